# SPDX-License-Identifier: BSD-3-Clause
# Functions of table.awk, table_gpu.awk and table_levels.awk: medians, and how numbers are printed.

# Sorts the blank-separated numbers in LIST into sorted[1..n] and returns n.
function sort_numbers(list, sorted,    n, i, j, value) {
    n = split(list, sorted, " ")
    for (i = 2; i <= n; i++) {
        value = sorted[i] + 0
        for (j = i - 1; j > 0 && sorted[j] + 0 > value; j--) sorted[j + 1] = sorted[j]
        sorted[j + 1] = value
    }
    return n
}

# The median by nearest rank, as in bench/allgather.
function median(list,    sorted, n) {
    n = sort_numbers(list, sorted)
    return n ? sorted[int((n + 1) / 2)] : ""
}

function min_of(list,    sorted) { return sort_numbers(list, sorted) ? sorted[1] : "" }

function size_text(bytes) {
    if (bytes >= 1073741824 && bytes % 1073741824 == 0) return bytes / 1073741824 "g"
    if (bytes >= 1048576 && bytes % 1048576 == 0) return bytes / 1048576 "m"
    if (bytes >= 1024 && bytes % 1024 == 0) return bytes / 1024 "k"
    return bytes ""
}

function cell(value, format) { return value == "" ? "-" : sprintf(format, value) }
