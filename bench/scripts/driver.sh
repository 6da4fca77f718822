# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# compare, compare_gpu and compare_levels source this file: messages, checks, and one run of mpirun.

progress() { echo "bench/${0##*/}: $*" >&2; }

refuse() {
    progress "$*"
    exit 2
}

is_count() { [[ $1 =~ ^[1-9][0-9]{0,4}$ ]]; }

# run_mpi NAME PROGRAM ARGUMENT...: the options of mpirun are in launch and module_options. It may take $timeout seconds.
# Its output goes to $work/log.
run_mpi() {
    local name=$1 program=$2 status=0 log=$work/log
    shift 2
    timeout --kill-after=10 "$timeout" mpirun "${launch[@]}" "${module_options[@]}" "$program" "$@" \
        >"$log" 2>&1 </dev/null || status=$?
    ((status == 0)) && return
    local how="ended with status $status"
    ((status != 124 && status != 137)) || how="did not end within $timeout s"
    progress "$name $how:"
    tail -n 30 "$log" >&2
    echo "command: mpirun ${launch[*]} ${module_options[*]} $program $*" >&2
    ((status == 2)) && exit 2
    exit 1
}
