// SPDX-License-Identifier: BSD-3-Clause
// HIP's names, on CUDA too: those that the GPU modules use, and a few more for applications.
#pragma once

#include "gpu/common/names.hpp"

#ifdef HIER_CUDA
namespace hier_test {
using hier::gpu::hipError_t;
using hier::gpu::hipHostMallocDefault;
using hier::gpu::hipMemcpyKind;
using hier::gpu::hipStream_t;
using hier::gpu::hipStreamNonBlocking;
using hier::gpu::hipSuccess;
using hipGraph_t = cudaGraph_t;
constexpr auto hipMemAttachGlobal = cudaMemAttachGlobal;
constexpr auto hipMemcpyDeviceToDevice = cudaMemcpyDeviceToDevice;
constexpr auto hipMemcpyDeviceToHost = cudaMemcpyDeviceToHost;
constexpr auto hipMemcpyHostToDevice = cudaMemcpyHostToDevice;
constexpr auto hipStreamCaptureModeGlobal = cudaStreamCaptureModeGlobal;
}  // namespace hier_test

#define hipFreeAsync cudaFreeAsync
#define hipGetErrorName cudaGetErrorName
#define hipMallocAsync cudaMallocAsync
#define hipMallocManaged cudaMallocManaged
#define hipPeekAtLastError cudaPeekAtLastError
#define hipStreamBeginCapture cudaStreamBeginCapture
#define hipStreamCreateWithFlags cudaStreamCreateWithFlags
#define hipStreamEndCapture cudaStreamEndCapture
#endif
