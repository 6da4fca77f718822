// SPDX-License-Identifier: BSD-3-Clause
// HIP's names for CUDA's functions, as far as src/gpu uses them. HIP has headers for NVIDIA too,
// but they lag behind CUDA's releases.
#pragma once

#ifdef HIER_CUDA
#include <cuda_runtime_api.h>

#define HIER_SAME_NAMES(NAME) constexpr auto hip##NAME = cuda##NAME

namespace hier::gpu {
using hipError_t = cudaError_t;
using hipEvent_t = cudaEvent_t;
using hipIpcMemHandle_t = cudaIpcMemHandle_t;
using hipMemcpyKind = cudaMemcpyKind;
using hipStream_t = cudaStream_t;

HIER_SAME_NAMES(ErrorInvalidValue);
HIER_SAME_NAMES(ErrorNoDevice);
HIER_SAME_NAMES(ErrorNotReady);
HIER_SAME_NAMES(EventDefault);
HIER_SAME_NAMES(EventDisableTiming);
constexpr auto hipHostMallocDefault = cudaHostAllocDefault;
HIER_SAME_NAMES(HostRegisterDefault);
HIER_SAME_NAMES(IpcMemLazyEnablePeerAccess);
HIER_SAME_NAMES(MemcpyDefault);
HIER_SAME_NAMES(StreamNonBlocking);
HIER_SAME_NAMES(Success);
constexpr auto hipErrorOutOfMemory = cudaErrorMemoryAllocation;
}  // namespace hier::gpu

#undef HIER_SAME_NAMES

#define hipDeviceGetPCIBusId cudaDeviceGetPCIBusId
#define hipDeviceGetStreamPriorityRange cudaDeviceGetStreamPriorityRange
#define hipEventCreateWithFlags cudaEventCreateWithFlags
#define hipEventDestroy cudaEventDestroy
#define hipEventRecord cudaEventRecord
#define hipFree cudaFree
#define hipGetDevice cudaGetDevice
#define hipGetDeviceCount cudaGetDeviceCount
#define hipGetErrorString cudaGetErrorString
#define hipGetLastError cudaGetLastError
#define hipHostFree cudaFreeHost
#define hipHostMalloc cudaHostAlloc
#define hipHostRegister cudaHostRegister
#define hipHostUnregister cudaHostUnregister
#define hipIpcCloseMemHandle cudaIpcCloseMemHandle
#define hipIpcGetMemHandle cudaIpcGetMemHandle
#define hipIpcOpenMemHandle cudaIpcOpenMemHandle
#define hipMalloc cudaMalloc
#define hipMemcpy cudaMemcpy
#define hipMemcpy2DAsync cudaMemcpy2DAsync
#define hipMemcpyAsync cudaMemcpyAsync
#define hipRuntimeGetVersion cudaRuntimeGetVersion
#define hipSetDevice cudaSetDevice
#define hipStreamCreateWithPriority cudaStreamCreateWithPriority
#define hipStreamDestroy cudaStreamDestroy
#define hipStreamSynchronize cudaStreamSynchronize
#else
#include <hip/hip_runtime_api.h>
#undef __noinline__  // HIP's macro; libstdc++ 16 has an attribute of this name
#endif
