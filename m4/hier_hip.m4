# HIER_HIP
# The HIP runtime, optional: HIP_CPPFLAGS, HIP_LIBS and the conditional HAVE_HIP. Taken where it is found unless
# --without-hip; asked for by --with-hip, its absence is an error. ROCm's own packages install in /opt/rocm.
AC_DEFUN([HIER_HIP], [
    hier_hip_wanted=$with_hip
    AS_IF([test -z "$with_hip" && test -e /opt/rocm/include/hip/hip_runtime_api.h], [with_hip=/opt/rocm])
    HIER_LIBRARY([hip], [HIP], [hip/hip_runtime_api.h], [amdhip64], [], [hip],
        [[#define __HIP_PLATFORM_AMD__ 1
          #include <hip/hip_runtime_api.h>]],
        [[int count = 0;
          return hipGetDeviceCount(&count) == hipSuccess;]])
    AS_IF([test "$hier_hip_wanted" = yes && test "$hier_hip" = no],
        [AC_MSG_ERROR([HIP is missing: install the Debian package libamdhip64-dev, or give its place by --with-hip=DIR])])
    AS_IF([test "$hier_hip" = yes],
        [HIP_CPPFLAGS="$HIP_CPPFLAGS -D__HIP_PLATFORM_AMD__=1"
         hier_hip_summary="found, not used yet"],
        [HIP_LIBS=
         hier_hip_summary="not found"
         AS_IF([test "$hier_hip_wanted" = no], [hier_hip_summary="left out"])])
    AM_CONDITIONAL([HAVE_HIP], [test "$hier_hip" = yes])
])
