# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Installs the packages that are missing and builds. quickstart and check source this file after steps.sh, in the root of
# the source tree. They may set build, the directory [build], and later build_targets, what make makes there [all].

: "${build:=build}"
build_targets=()

missing_packages() { # missing_packages FILE
    local package
    sed 's/#.*//' "$1" | while read -r package; do
        [[ -z $package ]] && continue
        [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || printf '%s ' "$package"
    done
}

# Sets as_root: the command that runs another one as root. Fails if that is not possible without a password.
find_root() {
    as_root=()
    [[ $(id -u) != 0 ]] || return 0
    as_root=(sudo -n)
    sudo -n true 2>/dev/null
}

apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@"
}

install_missing() { # install_missing PACKAGE...
    apt update && apt install --no-install-recommends "$@"
}

install_packages() {
    if ! command -v dpkg-query >/dev/null; then
        skipped "Packages" "this is neither Debian nor Ubuntu: please install those that scripts/packages lists"
        return
    fi
    local missing universe=
    read -ra missing < <(missing_packages scripts/packages) || true
    if ((${#missing[@]} == 0)); then
        skipped "Packages" "all installed"
        return
    fi
    if ! find_root; then
        echo "These packages are missing, and only root can install them. Run this command, then start $0 again:" >&2
        echo "    sudo apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    fi
    ! grep -q '^ID=ubuntu' /etc/os-release 2>/dev/null ||
        universe=" If apt-get cannot locate a package, add Ubuntu's universe: add-apt-repository universe"
    say "Packages to be installed: ${missing[*]}"
    step "Packages" "check the network and the package sources (apt-get update), then start $0 again.$universe" \
        install_missing "${missing[@]}"
    rm -f "$build/Makefile" # so configure runs again and finds the new packages
}

# Installs and fetches what the tests over RDMA need as well. If this fails, these tests are skipped.
fetch_machine() {
    local missing
    read -ra missing < <(missing_packages scripts/packages-rdma) || true
    ((${#missing[@]} == 0)) || { find_root && install_missing "${missing[@]}"; } || return
    test/rdma/machine possible --kernel "$build/test/rdma/kernel" || test/rdma/get-kernel "$build/test/rdma/kernel" ||
        { find_root && apt update && test/rdma/get-kernel "$build/test/rdma/kernel"; }
}

find_lcov() {
    command -v lcov >/dev/null || { find_root && install_missing lcov; }
}

# make runs autotools and configure again if their inputs change.
# shellcheck disable=SC2086 # several options
configure_and_make() {
    [[ -e configure ]] || ./autogen.sh || return
    [[ -e $build/Makefile ]] || (cd "$build" && ../configure ${HIER_CONFIGURE_OPTIONS:-}) || return
    make -C "$build" -j"$(nproc)" "${build_targets[@]}"
}

build_all() {
    step "Build in ./$build" "the reason is above; for a build from scratch remove ./$build and start $0 again" \
        configure_and_make
}

# Open MPI keeps its shared memory in /dev/shm. In containers this may be as small as 64 MiB, or missing.
find_shared_memory() {
    local free
    free=$(df -k --output=avail /dev/shm 2>/dev/null | tail -n 1)
    ((${free:-0} >= 256 * 1024)) ||
        export OMPI_MCA_btl_vader_backing_directory=${TMPDIR:-/tmp} OMPI_MCA_btl_sm_backing_directory=${TMPDIR:-/tmp}
}

# shellcheck disable=SC2034 # nodes_are is for the caller
# Sets nodes_are to cluster, virtual (virtual nodes on this host) or one.
find_nodes() {
    local reason
    if reason=$(timeout 60 test/cluster/cluster possible 2>&1); then
        nodes_are=cluster
        say "Nodes: the virtual cluster"
        return
    fi
    say "The virtual cluster is not possible:"
    while read -r reason; do say "    $reason"; done <<<"$reason"
    find_shared_memory
    # UCX finds network devices only by this directory. Virtual nodes need the loopback device.
    if [[ -d /sys/class/net ]]; then
        nodes_are=virtual
        say "Nodes: virtual ones on this host, without a network between them"
    else
        nodes_are=one
        say "Nodes: one, because virtual nodes need /sys, and /sys is not mounted here"
    fi
}
