dnl SPDX-License-Identifier: BSD-3-Clause
# HIER_NCCL
# NCCL and cuBLAS, optional and for the bench alone: NCCL_CPPFLAGS, NCCL_LIBS, CUBLAS_CPPFLAGS, CUBLAS_LIBS and the
# conditionals HAVE_NCCL, HAVE_CUBLAS, which imply HAVE_CUDA. Taken where they are found unless --without-nccl,
# --without-cublas; first looked for where CUDA is. After HIER_CUDA.
AC_DEFUN([HIER_NCCL], [
    hier_cuda_dir=`AS_ECHO(["$CUDA_CPPFLAGS"]) | $SED -n 's@.*\(-isystem *\|-I\)\(@<:@^ @:>@*\)/include.*@\2@p'`
    HIER_CUDA_COMPANION([nccl], [NCCL], [nccl.h],
        [[#include <nccl.h>]],
        [[int version = 0;
          return ncclGetVersion(&version) == ncclSuccess;]])
    HIER_CUDA_COMPANION([cublas], [cuBLAS], [cublas_v2.h],
        [[#include <cublas_v2.h>]],
        [[cublasHandle_t handle;
          return cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS;]])
    AM_CONDITIONAL([HAVE_NCCL], [test "$hier_nccl" = yes])
    AM_CONDITIONAL([HAVE_CUBLAS], [test "$hier_cublas" = yes])
])

# HIER_CUDA_COMPANION(name, Title, header, prologue, body)
# A library whose header includes CUDA's. Sets what HIER_LIBRARY sets, and hier_NAME_summary.
AC_DEFUN([HIER_CUDA_COMPANION], [
    hier_$1_wanted=$with_$1
    AS_IF([test -n "$HAVE_CUDA_TRUE" && test -z "$with_$1"], [with_$1=no])
    AS_IF([test -z "$with_$1" && test -n "$hier_cuda_dir" && test -e "$hier_cuda_dir/include/$3"], [with_$1=$hier_cuda_dir])
    hier_outer_CPPFLAGS=$CPPFLAGS
    hier_outer_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
    LIBS="$CUDA_LIBS $LIBS"
    HIER_LIBRARY([$1], [$2], [$3], [$1], [], [$1], [$4], [$5])
    CPPFLAGS=$hier_outer_CPPFLAGS
    LIBS=$hier_outer_LIBS
    AS_IF([test "${hier_$1_wanted:-no}" != no && test -n "$HAVE_CUDA_TRUE"],
        [AC_MSG_ERROR([--with-$1: $2 needs CUDA, which was not found: give its place by --with-cuda=DIR])])
    AS_IF([test "${hier_$1_wanted:-no}" != no && test "$hier_$1" = no],
        [AC_MSG_ERROR([$2 is missing: give its place by --with-$1=DIR])])
    hier_$1_summary="found, for the bench"
    AS_IF([test "$hier_$1" = no],
        [m4_toupper([$1])_LIBS=
         hier_$1_summary="not found"
         AS_IF([test "$hier_$1_wanted" = no], [hier_$1_summary="left out"])])
])
