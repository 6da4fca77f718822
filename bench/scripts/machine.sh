# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Is this machine quiet enough for a measurement? compare, compare_gpu and compare_levels source this file.

cpu_ticks() { # busy and all ticks since the start
    awk '/^cpu / { all = $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9; print all - $5 - $6, all }' /proc/stat
}

# The load of the cores in per cent. No rank of ours runs at that time, so other programs cause this load.
busy_percent() {
    local busy_before all_before busy_after all_after
    read -r busy_before all_before < <(cpu_ticks)
    sleep 0.5
    read -r busy_after all_after < <(cpu_ticks)
    echo $(((busy_after - busy_before) * 100 / (all_after > all_before ? all_after - all_before : 1)))
}

busiest() { echo $(($1 > $2 ? $1 : $2)); }
