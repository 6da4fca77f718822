# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the fault runs share: the cluster, mpirun with the component of the build tree, verdicts. They source this file.

faults=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cluster=$faults/../cluster/cluster
build=$(cd "${BUILD:-${top_builddir:-.}}" && pwd) || exit 2
export BUILD=$build

die() {
    echo "${0##*/}: $*" >&2
    exit 2
}

# Ends the run if this machine cannot do it: 77 means skipped.
need() { # need PROGRAM
    local component=$build/component/mca_coll_hier.so reason path
    reason=$("$cluster" possible 2>&1) || { echo "skipped: $reason" && exit 77; }
    [[ -e $component ]] || die "no $component: run make first, or set BUILD to the build directory"
    [[ -e $build/test/mpi/$1 ]] || die "no $build/test/mpi/$1: run make check, or make it alone"
    path=${HIER_COMPONENT_PATH:-}
    if [[ -z $path ]]; then
        path=$(env -u OMPI_MCA_mca_base_component_path ompi_info --parsable --param mca base --level 9 |
            sed -n 's/^mca:mca:base:param:mca_base_component_path:value:"\{0,1\}\([^":]*\).*/\1/p')
        path=${component%/*}:$path
    fi
    export OMPI_MCA_mca_base_component_path=$path OMPI_MCA_coll_hier_min_bytes=1
    scratch=$(mktemp -d) || exit 2
    trap 'rm -rf "$scratch"' EXIT
}

# start RANKS HOSTS OPTION... -- PROGRAM ARGUMENT...: starts mpirun in the background and sets job. Each rank writes to
# a file of its own, $scratch/out.RANK, because a link that is down carries no output either.
start() {
    local ranks=$1 hosts=$2 options=()
    shift 2
    while [[ $1 != -- ]]; do options+=("$1") && shift; done
    shift
    rm -f "$scratch"/out.*
    # shellcheck disable=SC2016 # the ranks expand it
    mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca coll hier "${options[@]}" -n "$ranks" \
        --host "$hosts" sh -c 'exec "$@" >"$0.${OMPI_COMM_WORLD_RANK:-$PMIX_RANK}" 2>&1' "$scratch/out" \
        "$build/test/mpi/$1" "${@:2}" >"$scratch/mpirun" 2>&1 </dev/null &
    job=$!
}

# Sets status when mpirun has ended within so many seconds. Otherwise fails.
await_job() { # await_job SECONDS
    local end=$((SECONDS + $1))
    while kill -0 "$job" 2>/dev/null; do
        ((SECONDS <= end)) || return 1
        sleep 0.1
    done
    status=0
    wait "$job" || status=$?
}

# In a cluster all processes of a name are ours: it has PIDs of its own.
end_job() {
    kill -KILL "$job" 2>/dev/null
    wait "$job" 2>/dev/null
    pkill -KILL -x "orted|prted|endless|fault" 2>/dev/null
    sleep 0.5
}

seconds_since() { # seconds_since EPOCHREALTIME
    awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'
}

sleep_ms() { sleep "$(awk -v ms="$1" 'BEGIN { print ms / 1000 }')"; }

output() { sed 's/^/#   /' "$scratch/mpirun" "$scratch"/out.* 2>/dev/null | tail -n 40; }

passed=0 failed=0
verdict() { # verdict NAME REASON: an empty reason is a pass
    if [[ -z $2 ]]; then
        passed=$((passed + 1)) && echo "ok - $1"
    else
        failed=$((failed + 1)) && printf 'not ok - %s: %s\n' "$1" "$2"
        output
    fi
}

finish() {
    echo "$passed passed, $failed failed"
    ((failed == 0))
}
