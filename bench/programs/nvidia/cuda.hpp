// SPDX-License-Identifier: BSD-3-Clause
// CUDA for the programs that hier is compared with. Every error ends the program and names the call.
#pragma once

#include "bench/lib/memory/memory.hpp"

#include <cuda_runtime_api.h>
#include <mpi.h>

#include <string>

namespace bench {

// `what`: the call, for the message.
void require(cudaError_t result, const char* what);

struct CudaDevice {
    int device = 0;       // made current
    std::string name;     // "CUDA 13.0, NVIDIA H200"
    std::string failure;  // the same on all ranks
};

// Collective. Each rank takes a GPU of its own. A host with too few GPUs is an error.
[[nodiscard]] CudaDevice take_device(MPI_Comm comm);

// A stream that does not wait for the default one.
class CudaStream {
public:
    CudaStream()
    {
        require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                "cudaStreamCreateWithFlags");
    }
    CudaStream(const CudaStream&) = delete;
    CudaStream& operator=(const CudaStream&) = delete;
    ~CudaStream() { require(cudaStreamDestroy(stream_), "cudaStreamDestroy"); }

    [[nodiscard]] cudaStream_t get() const { return stream_; }
    void wait() const { require(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

private:
    cudaStream_t stream_ = nullptr;
};

// Memory of the current device, by cudaMalloc. Memory by ncclMemAlloc differs in the first two
// functions alone.
class CudaMemory : public Memory {
public:
    void* allocate(std::size_t bytes) noexcept override;
    void release(void* pointer) noexcept override;
    void write(void* to, const std::byte* from_host, std::size_t bytes) final;
    void read(std::byte* to_host, const void* from, std::size_t bytes) final;
    [[nodiscard]] std::size_t window_bytes() const final { return std::size_t{4} << 20; }
};

}  // namespace bench
