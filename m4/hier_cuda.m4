dnl SPDX-License-Identifier: BSD-3-Clause
# HIER_CUDA
# CUDA's runtime, optional: CUDA_CPPFLAGS, CUDA_LIBS, HIER_CUDA_LIBRARY (the file that applications load) and the
# conditional HAVE_CUDA. Linked statically, as it needs the driver's library alone at run time. Taken where it is found
# unless --without-cuda; asked for by --with-cuda, its absence is an error. NVIDIA's own packages install in
# /usr/local/cuda.
AC_DEFUN([HIER_CUDA], [
    hier_cuda_wanted=$with_cuda
    AS_IF([test -z "$with_cuda" && test -e /usr/local/cuda/include/cuda_runtime_api.h], [with_cuda=/usr/local/cuda])
    HIER_LIBRARY([cuda], [CUDA], [cuda_runtime_api.h], [cudart_static], [-ldl -lrt -lpthread], [cudart],
        [[#include <cuda_runtime_api.h>]],
        [[int count = 0;
          return cudaGetDeviceCount(&count) == cudaSuccess;]])
    AS_IF([test "$hier_cuda_wanted" = yes && test "$hier_cuda" = no],
        [AC_MSG_ERROR([CUDA is missing: install NVIDIA's toolkit, or give its place by --with-cuda=DIR])])
    HIER_CUDA_LIBRARY=
    AS_IF([test "$hier_cuda" = yes],
        [HIER_COMPUTE_INT([hier_cuda_version], [CUDART_VERSION], [[#include <cuda_runtime_api.h>]], [$CUDA_CPPFLAGS])
         HIER_CUDA_LIBRARY=libcudart.so.`expr $hier_cuda_version / 1000`
         hier_cuda_summary="`expr $hier_cuda_version / 1000`.`expr $hier_cuda_version % 1000 / 10`"],
        [CUDA_LIBS=
         hier_cuda_summary="not found"
         AS_IF([test "$hier_cuda_wanted" = no], [hier_cuda_summary="left out"])])
    AC_SUBST([HIER_CUDA_LIBRARY])
    AM_CONDITIONAL([HAVE_CUDA], [test "$hier_cuda" = yes])
])
