dnl SPDX-License-Identifier: BSD-3-Clause
# HIER_UCX
# UCX 1.13 or newer (Debian 12's): UCX_CPPFLAGS, UCX_LIBS.
AC_DEFUN([HIER_UCX], [
    HIER_LIBRARY([ucx], [UCX], [ucp/api/ucp.h], [ucp], [-luct -lucs], [ucx],
        [[#include <ucp/api/ucp.h>
          #include <uct/api/uct.h>]],
        [[uct_component_h *components; unsigned count;
          ucs_status_t status = uct_query_components(&components, &count);
          return ucp_get_version_string()[0] == ucs_status_string(status)[0];]])
    AS_IF([test "$with_ucx" = no], [AC_MSG_ERROR([--without-ucx: UCX carries the data between nodes and cannot be left out])])
    AS_IF([test "$hier_ucx" = no],
        [AC_MSG_ERROR([UCX is missing: install the Debian package libucx-dev, or give its place by --with-ucx=DIR])])

    HIER_COMPUTE_INT([hier_ucx_major], [UCP_API_MAJOR], [[#include <ucp/api/ucp_version.h>]], [$UCX_CPPFLAGS])
    HIER_COMPUTE_INT([hier_ucx_minor], [UCP_API_MINOR], [[#include <ucp/api/ucp_version.h>]], [$UCX_CPPFLAGS])
    hier_ucx_version=$hier_ucx_major.$hier_ucx_minor
    AS_IF([test "$hier_ucx_major" -lt 1 || { test "$hier_ucx_major" -eq 1 && test "$hier_ucx_minor" -lt 13; }],
        [AC_MSG_ERROR([UCX $hier_ucx_version is too old: 1.13 or newer is needed (Debian package libucx-dev), or give another by --with-ucx=DIR])])
])
