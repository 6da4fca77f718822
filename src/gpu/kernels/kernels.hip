// SPDX-License-Identifier: BSD-3-Clause
// All kernels. hipcc and nvcc compile them into one file. The simulated runtimes compile them for the
// CPU, with thread blocks of one thread that run one after another.
#if defined(__HIP__)
#include <hip/hip_runtime.h>
#endif

#if defined(__CUDACC__)
#define HIER_IN_PLACE __grid_constant__  // not copied before it is indexed
#else
#define HIER_IN_PLACE
#endif
#if defined(__CUDACC__) || defined(__HIP__)
#define HIER_LET_OTHERS_RUN()
#define HIER_UNROLL _Pragma("unroll")
#define HIER_OF_DEVICE __device__  // a variable that each device has
#endif

#include "gpu/kernels/exchange.hip"
#include "gpu/kernels/fan_out.hip"
