# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Is this machine fit for a measurement? Sourced by compare and compare_gpu.

cpu_ticks() { # busy and all ticks since the start
    awk '/^cpu / { all = $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9; print all - $5 - $6, all }' /proc/stat
}

# How busy others keep the cores while nothing of ours runs, in per cent.
busy_percent() {
    local busy_before all_before busy_after all_after
    read -r busy_before all_before < <(cpu_ticks)
    sleep 0.5
    read -r busy_after all_after < <(cpu_ticks)
    echo $(((busy_after - busy_before) * 100 / (all_after > all_before ? all_after - all_before : 1)))
}

busiest() { echo $(($1 > $2 ? $1 : $2)); }
