# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The modules that are compared, and the options that select each. compare, compare_gpu and compare_levels source this
# file.

# Stock modules run as they ship. So the caller's variables for collectives are removed, except for hier's.
clean_environment() {
    local name
    for name in "${!OMPI_MCA_coll@}"; do
        [[ $name == OMPI_MCA_coll_hier_* ]] || unset "$name"
    done
}

# grep reads all of it: with -q it may end first, and then ompi_info fails.
require_module() {
    ompi_info --parsable | grep ":coll:$1:" >/dev/null || refuse "--modules: this Open MPI has no $1"
}

# set_module_options NAME: sets module_options, with which NAME serves MPI_Allgather. Stock modules run without hier,
# because hier's priority is higher.
set_module_options() {
    case $1 in
        hier)
            module_options=(--mca coll hier)
            [[ -z ${virtual_ranks:-} ]] || module_options+=(--mca coll_hier_ranks_per_node "$virtual_ranks")
            ;;
        # HAN serves if its priority is above tuned's 30. Its default is 0 in Open MPI 4.1 and 35 in 5.0.
        tuned) module_options=(--mca coll ^hier --mca coll_han_priority 0) ;;
        ring)
            module_options=(--mca coll ^hier --mca coll_han_priority 0
                --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allgather_algorithm 4)
            ;;
        han) module_options=(--mca coll ^hier --mca coll_han_priority 100) ;;
        han-simple) module_options=(--mca coll ^hier --mca coll_han_priority 100 --mca coll_han_use_simple_allgather 1) ;;
        acoll)
            require_module acoll
            module_options=(--mca coll ^hier --mca coll_acoll_priority 100)
            ;;
        ucc)
            require_module ucc
            module_options=(--mca coll ^hier --mca coll_ucc_enable 1 --mca coll_ucc_priority 100)
            ;;
        *) refuse "--modules: '$1' is not known; there are hier, tuned, ring, han, han-simple, acoll and ucc" ;;
    esac
}

# Open MPI looks for components in the build tree first, then in its own directory.
check_build() {
    [[ -x $build/bench/allgather ]] || refuse "no $build/bench/allgather: run make there, or name the build tree with --build"
    build=$(cd "$build" && pwd)
    command -v mpirun >/dev/null || refuse "no mpirun here: apt-get install openmpi-bin"
    [[ ,$modules, == *,hier,* ]] || return 0
    local directory=$build/component stock advice=
    [[ $modules == hier ]] || advice=", or leave hier out with --modules tuned,ring,han"
    [[ -e $directory/mca_coll_hier.so ]] ||
        refuse "no $directory/mca_coll_hier.so: run make there$advice"
    stock=$(ompi_info --parsable --param mca base --level 9 |
        sed -n 's/^mca:mca:base:param:mca_base_component_path:value://p' | tr -d '"')
    export OMPI_MCA_mca_base_component_path=$directory:$stock
}

# The point-to-point layer that Open MPI chose, read from its log.
find_pml() {
    module_options=(--mca coll ^hier --mca pml_base_verbose 10)
    run_bench "the first run, which finds the pml," --sizes 0 --iterations 1 --validate none
    sed -n 's/.*select: component \([a-z0-9]*\) selected.*/\1/p; s/.*selected \([a-z0-9]*\) best priority.*/\1/p' "$work/log" |
        sort -u | paste -sd+
}

save_rows() { # save_rows NEW FILE: appends; FILE keeps one header. Rows with other columns go to a file beside it
    local file=$2
    if [[ -s $file && $(head -n 1 "$file") != "$(head -n 1 "$1")" ]]; then
        file=$(mktemp "$2.XXX")
        progress "$2 has other columns, so the rows are in $file"
    fi
    if [[ -s $file ]]; then
        tail -n +2 "$1" >>"$file"
    else
        cat "$1" >>"$file"
    fi
}
