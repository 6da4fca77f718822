// SPDX-License-Identifier: BSD-3-Clause
// bf16 matrix products on a stream of their own. They keep the GPU busy during an allgather.
#pragma once

#include "cuda.hpp"

#include <cublas_v2.h>

#include <cstddef>

namespace bench {

class Gemm {
public:
    // N x N matrices of random values in the current device. Zeros would draw less power and run
    // faster.
    explicit Gemm(long n);
    Gemm(const Gemm&) = delete;
    Gemm& operator=(const Gemm&) = delete;
    ~Gemm();

    // Queues `count` products and returns.
    void launch(long count);
    void wait() const { stream_.wait(); }
    // Has the last launch not ended?
    [[nodiscard]] bool runs() const;
    // Seconds on the device for all products of the last launch. Call wait() first.
    [[nodiscard]] double device_time() const;

private:
    int n_;
    CudaStream stream_;
    CudaMemory memory_;
    Buffer a_;
    Buffer b_;
    Buffer product_;
    Buffer workspace_;
    cublasHandle_t cublas_ = nullptr;
    cudaEvent_t begin_ = nullptr;
    cudaEvent_t end_ = nullptr;
};

}  // namespace bench
