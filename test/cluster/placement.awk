# SPDX-License-Identifier: BSD-3-Clause
# Prints the node of every rank. The input is a layout, the ranks on each node: 3,1. `order` is block, cyclic, reversed
# or shuffled; shuffled is the same in every run.

BEGIN { FS = "," }

{
    for (n = 1; n <= NF; n++) { left[n] = $n; total += $n }
    for (n = 1; n <= NF; n++) for (i = 0; i < $n; i++) block[++filled] = n - 1
    if (order == "cyclic") {
        for (r = 0; r < total;) for (n = 1; n <= NF; n++) if (left[n] > 0) { left[n]--; r++; printf "%d ", n - 1 }
    } else if (order == "reversed") {
        for (r = total; r > 0; r--) printf "%d ", block[r]
    } else {
        if (order == "shuffled")
            for (r = total; r > 1; r--) {
                seed = (seed * 1103515245 + 12345) % 2147483648; j = int(seed / 65536) % r + 1
                swap = block[r]; block[r] = block[j]; block[j] = swap
            }
        for (r = 1; r <= total; r++) printf "%d ", block[r]
    }
}
