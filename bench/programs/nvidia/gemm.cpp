// SPDX-License-Identifier: BSD-3-Clause
#include "gemm.hpp"

#include "bench/lib/program/program.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace bench {
namespace {

constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

std::size_t matrix_bytes(long n)
{
    return static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * sizeof(std::uint16_t);
}

void require_cublas(cublasStatus_t status, const char* what)
{
    if (status != CUBLAS_STATUS_SUCCESS) {
        give_up(std::string(what) + ": " + cublasGetStatusString(status));
    }
}

// Random values with magnitudes from 0.5 to 2, so that no product overflows.
void fill(const Buffer& matrix, unsigned seed)
{
    std::mt19937 random(seed);
    std::vector<std::uint16_t> values(matrix.bytes() / sizeof(std::uint16_t));
    for (std::uint16_t& value : values) {
        value = static_cast<std::uint16_t>(0x3f00U | (random() & 0x80ffU));
    }
    matrix.memory().write(matrix.data(), reinterpret_cast<const std::byte*>(values.data()),
                          matrix.bytes());
}

}  // namespace

Gemm::Gemm(long n)
    : n_(static_cast<int>(n)), a_(memory_, matrix_bytes(n)), b_(memory_, matrix_bytes(n)),
      product_(memory_, matrix_bytes(n)), workspace_(memory_, workspace_bytes)
{
    for (const Buffer* buffer : {&a_, &b_, &product_, &workspace_}) {
        if (buffer->data() == nullptr) {
            give_up("no GPU memory for matrices of " + std::to_string(n) + " x " +
                    std::to_string(n) + "; give a smaller --gemm");
        }
    }
    fill(a_, 1);
    fill(b_, 2);
    require_cublas(cublasCreate(&cublas_), "cublasCreate");
    require_cublas(cublasSetStream(cublas_, stream_.get()), "cublasSetStream");
    // Without this cuBLAS would allocate, and that can wait for the whole device.
    require_cublas(cublasSetWorkspace(cublas_, workspace_.data(), workspace_bytes),
                   "cublasSetWorkspace");
    require(cudaEventCreate(&begin_), "cudaEventCreate");
    require(cudaEventCreate(&end_), "cudaEventCreate");
}

Gemm::~Gemm()
{
    require(cudaEventDestroy(end_), "cudaEventDestroy");
    require(cudaEventDestroy(begin_), "cudaEventDestroy");
    require_cublas(cublasDestroy(cublas_), "cublasDestroy");
}

void Gemm::launch(long count)
{
    const float one = 1.0F;
    const float zero = 0.0F;
    require(cudaEventRecord(begin_, stream_.get()), "cudaEventRecord");
    for (long i = 0; i < count; ++i) {
        require_cublas(cublasGemmEx(cublas_, CUBLAS_OP_N, CUBLAS_OP_N, n_, n_, n_, &one, a_.data(),
                                    CUDA_R_16BF, n_, b_.data(), CUDA_R_16BF, n_, &zero,
                                    product_.data(), CUDA_R_16BF, n_, CUBLAS_COMPUTE_32F,
                                    CUBLAS_GEMM_DEFAULT),
                       "cublasGemmEx");
    }
    require(cudaEventRecord(end_, stream_.get()), "cudaEventRecord");
}

bool Gemm::runs() const
{
    const cudaError_t state = cudaEventQuery(end_);
    if (state != cudaErrorNotReady) {
        require(state, "cudaEventQuery");
    }
    return state == cudaErrorNotReady;
}

double Gemm::device_time() const
{
    float milliseconds = 0.0F;
    require(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace bench
