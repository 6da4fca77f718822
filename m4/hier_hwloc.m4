dnl SPDX-License-Identifier: BSD-3-Clause
# HIER_HWLOC
# hwloc 2: HWLOC_CPPFLAGS, HWLOC_LIBS.
AC_DEFUN([HIER_HWLOC], [
    HIER_LIBRARY([hwloc], [hwloc], [hwloc.h], [hwloc], [], [hwloc],
        [[#include <hwloc.h>]],
        [[hwloc_topology_t topology;
          return hwloc_topology_init(&topology);]])
    AS_IF([test "$with_hwloc" = no], [AC_MSG_ERROR([--without-hwloc: hwloc tells where ranks and devices are and cannot be left out])])
    AS_IF([test "$hier_hwloc" = no],
        [AC_MSG_ERROR([hwloc is missing: install the Debian package libhwloc-dev, or give its place by --with-hwloc=DIR])])

    HIER_COMPUTE_INT([hier_hwloc_major], [HWLOC_API_VERSION >> 16], [[#include <hwloc.h>]], [$HWLOC_CPPFLAGS])
    HIER_COMPUTE_INT([hier_hwloc_minor], [(HWLOC_API_VERSION >> 8) & 255], [[#include <hwloc.h>]], [$HWLOC_CPPFLAGS])
    hier_hwloc_version="$hier_hwloc_major.$hier_hwloc_minor (interface)"
    AS_IF([test "$hier_hwloc_major" -lt 2],
        [AC_MSG_ERROR([hwloc $hier_hwloc_version is too old: 2.0 or newer is needed (Debian package libhwloc-dev), or give another by --with-hwloc=DIR])])
])
