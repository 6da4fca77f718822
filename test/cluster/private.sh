# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Mounts that the switch and each node need. Both source this file in a new mount namespace.

state=/dev/shm/hier-cluster # this file system ends with the namespace

is_mount_point() {
    awk -v path="$1" '$5 == path { found = 1 } END { exit !found }' /proc/self/mountinfo
}

# Fails and sets reason if something of the host would change. In a chroot that is no mount point, the mount of / is out
# of reach, and a new mount there might appear on the host. So new mounts are made only on other mounts.
private_mounts() { # private_mounts DIRECTORY-OF-AGENT
    local point
    # unshare has done this already where it can
    [[ $HIER_CLUSTER_PROPAGATION == private ]] || while read -r _ _ _ _ point _; do
        mount --make-private "$(printf %b "$point")" 2>/dev/null || true
    done </proc/self/mountinfo
    reachable_root=$(is_mount_point / && echo yes || true)
    if [[ -z $reachable_root ]] && ! is_mount_point /dev && ! is_mount_point /dev/shm; then
        reason="this is a chroot without a mounted /dev: mount --rbind /dev there"
        return 1
    fi
    reason="cannot mount /proc in a new PID namespace"
    mount -t proc -o nosuid,nodev,noexec proc /proc || return 1
    reason="cannot mount a /dev/shm of its own"
    mkdir -p /dev/shm && mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs /dev/shm && mkdir -m 755 "$state" || return 1
    # Open MPI splits the path of the agent at blanks and colons. This link has neither. Open MPI's daemons use it, too.
    ln -s "$1/agent" "$state/agent"
    # UCX and hwloc look for network devices in /sys. It shows the devices of the namespace that has mounted it.
    if [[ -n $reachable_root ]] || is_mount_point /sys; then
        mount -t sysfs -o nosuid,nodev,noexec sysfs /sys || { reason="cannot mount /sys" && return 1; }
    fi
    reason=
}

over_file() { # over_file NEW OLD
    [[ -z $reachable_root || ! -e $2 ]] || mount --bind "$1" "$2"
}
