// HIP's names, on CUDA too: what the GPU runtime's modules use, and what an application does besides.
#pragma once

#include "gpu/names.hpp"

#ifdef HIER_CUDA
namespace hier_test {
using hier::gpu::hipError_t;
using hier::gpu::hipHostMallocDefault;
using hier::gpu::hipMemcpyKind;
using hier::gpu::hipSuccess;
constexpr auto hipMemAttachGlobal = cudaMemAttachGlobal;
constexpr auto hipMemcpyDeviceToDevice = cudaMemcpyDeviceToDevice;
constexpr auto hipMemcpyDeviceToHost = cudaMemcpyDeviceToHost;
constexpr auto hipMemcpyHostToDevice = cudaMemcpyHostToDevice;
}  // namespace hier_test

#define hipFreeAsync cudaFreeAsync
#define hipGetErrorName cudaGetErrorName
#define hipMallocAsync cudaMallocAsync
#define hipMallocManaged cudaMallocManaged
#define hipPeekAtLastError cudaPeekAtLastError
#endif
