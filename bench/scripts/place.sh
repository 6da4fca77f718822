# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Places the ranks on nodes. compare and compare_levels source this file. It reads their options from the variables
# nodes ranks_per_node layout order virtual hosts pml extra.

placement=$(dirname "${BASH_SOURCE[0]}")/../../test/cluster/placement.awk

# Sets per_node (array), ranks, nodes, layout, host_list (array) and virtual_ranks.
place() {
    if [[ -z $layout ]]; then
        nodes=${nodes:-${HIER_CLUSTER_NODES:-1}}
        is_count "$nodes" || refuse "--nodes '$nodes' is not valid; it must be a whole number from 1"
        is_count "$ranks_per_node" || refuse "--ranks-per-node '$ranks_per_node' is not valid; it must be a whole number from 1"
        layout=$(for ((i = 0; i < nodes; i++)); do printf '%s,' "$ranks_per_node"; done)
        layout=${layout%,}
    fi
    IFS=, read -ra per_node <<<"$layout"
    ranks=0
    local count
    for count in "${per_node[@]}"; do
        is_count "$count" || refuse "--layout '$layout' is not valid; it must be ranks per node, like 3,1"
        ((ranks += count))
    done
    [[ -z $nodes ]] || ((nodes == ${#per_node[@]})) || refuse "--nodes $nodes and --layout $layout disagree; give one of them"
    nodes=${#per_node[@]}
    case $order in
        block) ;;
        cyclic | reversed | shuffled) [[ -z $virtual ]] || refuse "--order $order needs real nodes: hier itself places ranks on virtual nodes" ;;
        *) refuse "--order '$order' is not valid; it must be block, cyclic, reversed or shuffled" ;;
    esac
    ((ranks > 1)) || refuse "an allgather needs two ranks or more; ask for more"
    [[ -z $virtual ]] || virtual_nodes
    choose_hosts
}

# coll_hier_ranks_per_node cuts a host into equal parts and a smaller last one.
virtual_nodes() {
    [[ -z $hosts ]] || refuse "--virtual and --hosts exclude one another"
    virtual_ranks=${per_node[0]}
    local i
    for ((i = 1; i < nodes; i++)); do
        ((per_node[i] == virtual_ranks || (i == nodes - 1 && per_node[i] < virtual_ranks))) ||
            refuse "--virtual cannot make the layout $layout: all nodes have the same size, and the last may be smaller"
    done
}

choose_hosts() {
    host_list=()
    if [[ -n $hosts ]]; then
        IFS=, read -ra host_list <<<"$hosts"
    elif [[ -n ${HIER_CLUSTER_NAMES:-} ]]; then
        read -ra host_list <<<"$HIER_CLUSTER_NAMES"
    elif [[ -z $virtual ]] && ((nodes > 1)); then
        refuse "no cluster here: run test/cluster/cluster run --nodes $nodes -- bench/${0##*/} ..., or give --hosts or --virtual"
    fi
    local needed=$nodes
    [[ -z $virtual ]] || needed=1
    ((${#host_list[@]} == 0 || ${#host_list[@]} >= needed)) ||
        refuse "$nodes nodes were asked for, but there are only ${#host_list[@]}: ${host_list[*]}"
}

host_of_each_rank() {
    local node
    for node in $(awk -v order="$order" -f "$placement" <<<"$layout"); do
        echo "${host_list[node]}"
    done
}

# Sets launch: the options of mpirun that every run has.
launch_options() {
    launch=(-n "$ranks")
    local slots=() i max_ranks=0
    for ((i = 0; i < nodes; i++)); do
        ((per_node[i] <= max_ranks)) || max_ranks=${per_node[i]}
        [[ ${#host_list[@]} == 0 || -n $virtual ]] || slots+=("${host_list[i]}:${per_node[i]}")
    done
    [[ -z $virtual || ${#host_list[@]} == 0 ]] || slots=("${host_list[0]}:$ranks")
    if [[ $order != block ]] && ((${#slots[@]} > 0)); then
        host_of_each_rank >"$work/hosts"
        launch+=(--hostfile "$work/hosts" --map-by seq)
    elif ((${#slots[@]} > 0)); then
        launch+=(--host "$(IFS=, && echo "${slots[*]}")")
    fi
    # The nodes of a virtual cluster share the cores of this machine.
    local on_this_machine=$ranks
    [[ -z $hosts ]] || on_this_machine=$max_ranks
    if ((on_this_machine > $(nproc))); then
        launch+=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
    fi
    [[ -z $pml ]] || launch+=(--mca pml "$pml")
    # Debian's pml ucx refuses to run over tcp without these options.
    [[ $pml != ucx ]] || launch+=(--mca pml_ucx_tls any --mca pml_ucx_devices any)
    launch+=("${extra[@]}")
}
