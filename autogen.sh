#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes configure and the Makefile templates in a tree that comes from git.
# A release tarball holds them already and needs none of these tools.
set -eu
cd "$(dirname "$0")"

missing=
need() { # TOOL PACKAGE
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need autoconf autoconf
need automake automake
need libtoolize libtool
need pkg-config pkg-config

if [ -n "$missing" ]; then
    echo "autogen.sh: these packages are missing:$missing" >&2
    echo "autogen.sh: on Debian and Ubuntu: apt-get install$missing" >&2
    exit 1
fi

exec autoreconf --force --install "$@"
