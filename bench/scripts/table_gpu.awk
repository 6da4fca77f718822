# SPDX-License-Identifier: BSD-3-Clause
# Turns the rows of all rounds into one table. The first file has the point-to-point rates, the second one the rows of
# the allgathers. Exit status 1: hier did not serve every call.
#
# A figure is the median of the rounds' medians. With loop there is a second table, of the median of the rounds' means.

BEGIN { modes = split(by, mode, ",") }

# RFC 4180, one line: sets field[1..n].
function parse(line,    n, text) {
    for (n = 1; ; n++) {
        if (match(line, /^"([^"]|"")*"/)) {
            text = substr(line, 2, RLENGTH - 2)
            gsub(/""/, "\"", text)
        } else {
            match(line, /^[^,]*/)
            text = substr(line, 1, RLENGTH)
        }
        field[n] = text
        line = substr(line, RLENGTH + 1)
        if (line == "") return n
        line = substr(line, 2)
    }
}

FNR == 1 {
    file++
    split("", column)
    count = parse($0)
    for (i = 1; i <= count; i++) column[field[i]] = i
    next
}

{ parse($0) }

file == 1 {
    rate = field[column["slowest_bytes_per_second"]] + 0
    if (rate > best_rate) best_rate = rate
    next
}

{
    size = field[column["total_bytes"]]
    name = field[column["label"]]
    if (name == "nccl") {
        name = field[column["call"]]
        sub(/^ncclAllGather /, "", name)
        nccl = field[column["gpu_runtime"]]
    } else {
        runtime = field[column["gpu_runtime"]]
        served = field[column["served_by_hier"]]
        calls = field[column["calls"]]
        hier_rows++
        if (served != calls) fallback[size] = (served == "" ? "no" : served) " of " calls
    }
    if (!(size in seen)) order[++sizes] = size
    seen[size] = 1
    times["median", name, size] = times["median", name, size] " " field[column["median_us"]]
    times["loop", name, size] = times["loop", name, size] " " field[column["loop_us"]]
    host = field[column["host"]]; kernel = field[column["kernel"]]; mpi = field[column["mpi"]]
    commit = field[column["commit"]]; ranks = field[column["ranks"]]; date = field[column["date"]]
    buffers = field[column["buffers"]]
}

function head() {
    printf "Allgather in GPU memory, %d ranks on one host, us by the slowest rank, %d round(s)%s\n", ranks, rounds,
        (buffers > 1 ? sprintf(", %d pairs of buffers", buffers) : "")
    printf "%s, %s, %s cores, kernel %s, %s, commit %s\n", date, host, cores, kernel, mpi, commit
    printf "hier: %s; NCCL: %s\n", runtime, nccl
    if (best_rate) printf "p2p: every GPU pushes %.1f GB/s into the next one, all at once (slowest GPU, best round)\n", best_rate / 1e9
}

function title(    i) {
    printf "%11s %11s", "total bytes", "hier"
    for (i = 1; i <= modes; i++) printf " %11s", mode[i]
    printf " %11s %10s %8s\n", "NCCL/hier", "hier GB/s", "of p2p"
}

function line(method, size,    i, value, hier, best, speed) {
    hier = median(times[method, "hier", size])
    printf "%11s %11s", size_text(size), cell(hier, "%.1f") (size in fallback ? "*" : "")
    best = ""
    for (i = 1; i <= modes; i++) {
        value = median(times[method, mode[i], size])
        printf " %11s", cell(value, "%.1f")
        if (value != "" && (best == "" || value < best)) best = value
    }
    speed = hier > 0 ? size * (ranks - 1) / ranks / hier * 1e6 : ""
    printf " %11s %10s %8s\n", (hier > 0 && best != "" ? sprintf("%.2fx", best / hier) : "-"),
        (speed == "" ? "-" : sprintf("%.1f", speed / 1e9)),
        (speed == "" || !best_rate ? "-" : sprintf("%.0f%%", speed / best_rate * 100))
}

function table(method,    i) {
    title()
    for (i = 1; i <= sizes; i++) line(method, order[i])
}

function notes(    i) {
    print "\nNCCL/hier: the fastest of NCCL's modes; GB/s: what enters each GPU from the others"
    for (i = 1; i <= sizes; i++) if (order[i] in fallback) {
        printf "* at %s hier served %s calls\n", size_text(order[i]), fallback[order[i]]
        failed = !allow_fallback
    }
    if (!hier_rows) {
        print "FAILED: no figures of hier"
        failed = 1
    } else if (failed) {
        print "FAILED: hier did not serve every call: set OMPI_MCA_coll_hier_min_bytes=1, or give larger --sizes or --allow-fallback"
    }
    if (busy > 10) printf "CAUTION: other programs kept the cores %d%% busy: measure again on a quiet machine\n", busy
}

END {
    if (!sizes) { print "no rows: nothing was measured"; exit 1 }
    head()
    print "\nEach call between two barriers, median:"
    table("median")
    if (loop) {
        print "\nCalls back to back, mean:"
        table("loop")
    }
    notes()
    exit failed ? 1 : 0
}
