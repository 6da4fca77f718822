dnl SPDX-License-Identifier: BSD-3-Clause
# HIER_KERNELS
# Compilers for kernels, optional: NVCC and NVCC_TARGETS with the conditional HAVE_NVCC, HIPCC and HIPCC_TARGETS with
# HAVE_HIPCC. Without a compiler hier runs without kernels on those GPUs. A compiler gets the targets that it knows among
# those below. A newer NVIDIA GPU gets its code from the driver, out of that for compute_80.
AC_DEFUN([HIER_KERNELS], [
    AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin$PATH_SEPARATOR$PATH])
    NVCC_TARGETS=
    AS_IF([test "$hier_cuda" = yes && test -n "$NVCC"],
        [for hier_sm in 80 90 100; do
             AS_IF(["$NVCC" --list-gpu-code 2>/dev/null | grep -q -x "sm_$hier_sm"],
                 [NVCC_TARGETS="$NVCC_TARGETS -gencode arch=compute_$hier_sm,code=sm_$hier_sm"])
         done
         NVCC_TARGETS="$NVCC_TARGETS -gencode arch=compute_80,code=compute_80"
         HIER_TRY_KERNEL([cuda], [$NVCC -x cu --fatbin $NVCC_TARGETS], [])],
        [hier_kernels_cuda=no])
    AC_PATH_PROG([HIPCC], [hipcc], [], [$with_rocm/bin$PATH_SEPARATOR$PATH])
    HIPCC_TARGETS=
    AS_IF([test "$hier_rocm" = yes && test -n "$HIPCC"],
        [hier_kernels_rocm=no
         for hier_gfx in gfx90a gfx942 gfx950; do
             HIER_TRY_KERNEL([one], [$HIPCC --genco --offload-arch=$hier_gfx], [[#include <hip/hip_runtime.h>]])
             AS_IF([test "$hier_kernels_one" = yes],
                 [HIPCC_TARGETS="$HIPCC_TARGETS --offload-arch=$hier_gfx"
                  hier_kernels_rocm=yes])
         done],
        [hier_kernels_rocm=no])
    AC_SUBST([NVCC_TARGETS])
    AC_SUBST([HIPCC_TARGETS])
    AM_CONDITIONAL([HAVE_NVCC], [test "$hier_kernels_cuda" = yes])
    AM_CONDITIONAL([HAVE_HIPCC], [test "$hier_kernels_rocm" = yes])
    hier_kernels_summary="CUDA: $hier_kernels_cuda, ROCm: $hier_kernels_rocm"
])

# HIER_TRY_KERNEL(name, command, prologue)
# Sets hier_kernels_NAME.
AC_DEFUN([HIER_TRY_KERNEL], [
    AC_MSG_CHECKING([whether $2 works])
    cat >conftest.hip <<_ACEOF
$3
extern "C" __global__ void kernel(int* at) { *at = 1; }
_ACEOF
    AS_IF([$2 -o conftest.image conftest.hip >&AS_MESSAGE_LOG_FD 2>&1],
        [hier_kernels_$1=yes], [hier_kernels_$1=no])
    rm -f conftest.hip conftest.image
    AC_MSG_RESULT([$hier_kernels_$1])
])
