dnl SPDX-License-Identifier: BSD-3-Clause
# HIER_ROCM
# ROCm's HIP runtime, optional: ROCM_CPPFLAGS, ROCM_LIBS, HIER_ROCM_LIBRARY (the file that applications load) and the
# conditionals HAVE_ROCM and HAVE_ROCM_5 (test/sim simulates that version). Taken where it is found unless --without-rocm; asked for by --with-rocm, its absence is an
# error. ROCm's own packages install in /opt/rocm.
AC_DEFUN([HIER_ROCM], [
    hier_rocm_wanted=$with_rocm
    AS_IF([test -z "$with_rocm" && test -e /opt/rocm/include/hip/hip_runtime_api.h], [with_rocm=/opt/rocm])
    HIER_LIBRARY([rocm], [ROCm's HIP], [hip/hip_runtime_api.h], [amdhip64], [], [hip],
        [[#define __HIP_PLATFORM_AMD__ 1
          #include <hip/hip_runtime_api.h>]],
        [[int count = 0;
          return hipGetDeviceCount(&count) == hipSuccess;]])
    AS_IF([test "$hier_rocm_wanted" = yes && test "$hier_rocm" = no],
        [AC_MSG_ERROR([HIP is missing: install the Debian package libamdhip64-dev, or give ROCm's place by --with-rocm=DIR])])
    HIER_ROCM_LIBRARY=
    AS_IF([test "$hier_rocm" = yes],
        [ROCM_CPPFLAGS="$ROCM_CPPFLAGS -D__HIP_PLATFORM_AMD__=1"
         HIER_COMPUTE_INT([hier_rocm_major], [HIP_VERSION_MAJOR], [[#include <hip/hip_version.h>]], [$ROCM_CPPFLAGS])
         HIER_COMPUTE_INT([hier_rocm_minor], [HIP_VERSION_MINOR], [[#include <hip/hip_version.h>]], [$ROCM_CPPFLAGS])
         HIER_ROCM_LIBRARY=libamdhip64.so.$hier_rocm_major
         hier_rocm_summary="$hier_rocm_major.$hier_rocm_minor"],
        [ROCM_LIBS=
         hier_rocm_summary="not found (Debian package libamdhip64-dev)"
         AS_IF([test "$hier_rocm_wanted" = no], [hier_rocm_summary="left out"])])
    AC_SUBST([HIER_ROCM_LIBRARY])
    AM_CONDITIONAL([HAVE_ROCM], [test "$hier_rocm" = yes])
    AM_CONDITIONAL([HAVE_ROCM_5], [test "$hier_rocm" = yes && test "$hier_rocm_major" = 5])
])
