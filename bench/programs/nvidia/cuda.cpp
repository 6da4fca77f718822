// SPDX-License-Identifier: BSD-3-Clause
#include "cuda.hpp"

#include "bench/lib/machine/local_rank.hpp"
#include "bench/lib/program/agree.hpp"
#include "bench/lib/program/program.hpp"

#include <algorithm>

namespace bench {
namespace {

std::string version_text()
{
    int version = 0;
    require(cudaRuntimeGetVersion(&version), "cudaRuntimeGetVersion");
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string why_not(int local, cudaError_t result, int devices)
{
    if (result != cudaSuccess) {
        return std::string("no GPU: cudaGetDeviceCount: ") + cudaGetErrorString(result);
    }
    if (local >= devices) {
        return "this host has " + std::to_string(devices) + " GPU(s), too few for a rank each";
    }
    return "";
}

}  // namespace

void require(cudaError_t result, const char* what)
{
    if (result != cudaSuccess) {
        give_up(std::string(what) + ": " + cudaGetErrorString(result));
    }
}

CudaDevice take_device(MPI_Comm comm)
{
    CudaDevice taken;
    taken.device = local_rank(comm);
    int devices = 0;
    const cudaError_t result = cudaGetDeviceCount(&devices);
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    const std::string own = why_not(taken.device, result, devices);
    taken.failure =
        agree_on_failure(comm, own.empty() ? "" : "rank " + std::to_string(rank) + ": " + own);
    if (!taken.failure.empty()) {
        return taken;
    }
    require(cudaSetDevice(taken.device), "cudaSetDevice");
    cudaDeviceProp properties{};
    require(cudaGetDeviceProperties(&properties, taken.device), "cudaGetDeviceProperties");
    taken.name = "CUDA " + version_text() + ", " + properties.name;
    return taken;
}

void* CudaMemory::allocate(std::size_t bytes) noexcept
{
    void* pointer = nullptr;
    const cudaError_t result = cudaMalloc(&pointer, std::max<std::size_t>(bytes, 1));
    if (result == cudaErrorMemoryAllocation) {
        // Clears the error. Otherwise the next call that asks would find it.
        (void)cudaGetLastError();
        return nullptr;
    }
    require(result, "cudaMalloc");
    return pointer;
}

void CudaMemory::release(void* pointer) noexcept { require(cudaFree(pointer), "cudaFree"); }

void CudaMemory::write(void* to, const std::byte* from_host, std::size_t bytes)
{
    require(cudaMemcpy(to, from_host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy to the device");
    // cudaMemcpy may return before pageable memory has arrived. The streams that use the memory do
    // not wait for the default stream.
    require(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

void CudaMemory::read(std::byte* to_host, const void* from, std::size_t bytes)
{
    require(cudaMemcpy(to_host, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy to the host");
}

}  // namespace bench
