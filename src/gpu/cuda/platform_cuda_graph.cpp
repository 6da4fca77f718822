// SPDX-License-Identifier: BSD-3-Clause
// CUDA: the CPU needs some 4 us to issue a kernel. A copy inside a device is a kernel, too. If the
// kernel is the only node of a graph that exists already, the CPU needs 2 us (H200, CUDA 13.0).
#include <cuda_runtime_api.h>

#include <new>

#include "gpu/common/platform.hpp"
#include "gpu/common/report.hpp"
#include "gpu/cuda/driver.hpp"
#include "hier/hier.h"

namespace hier::gpu {
namespace {

bool are_same(const Copy& a, const Copy& b)
{
    return a.to == b.to && a.from == b.from && a.bytes == b.bytes;
}

class GraphCopy final : public PreparedCopy {
public:
    GraphCopy() = default;
    GraphCopy(const GraphCopy&) = delete;
    GraphCopy& operator=(const GraphCopy&) = delete;
    ~GraphCopy() override
    {
        if (executable_ != nullptr) (void)cudaGraphExecDestroy(executable_);
        if (graph_ != nullptr) (void)cudaGraphDestroy(graph_);
    }

    bool start(hipStream_t stream, const Copy& copy) override
    {
        const bool is_known = are_same(copy, last_);
        if ((is_known && is_refused_) || refusals_ == max_refusals) return false;
        hipError_t error = is_known ? hipSuccess : set(copy);
        if (error == hipSuccess) error = cudaGraphLaunch(executable_, stream);
        last_ = copy;
        is_refused_ = error != hipSuccess;
        if (!is_refused_) return true;
        if (refusals_++ == 0)
            report(HIER_LOG_INFO, "CUDA refuses a copy as a graph (%s)", hipGetErrorString(error));
        (void)hipGetLastError();
        return false;
    }

private:
    // A graph that runs already does not change.
    hipError_t set(const Copy& copy)
    {
        constexpr auto kind = cudaMemcpyDeviceToDevice;
        if (executable_ != nullptr)
            return cudaGraphExecMemcpyNodeSetParams1D(executable_, node_, copy.to, copy.from,
                                                      copy.bytes, kind);
        hipError_t error = graph_ != nullptr ? hipSuccess : cudaGraphCreate(&graph_, 0);
        if (error != hipSuccess) return error;
        error = node_ != nullptr
                    ? cudaGraphMemcpyNodeSetParams1D(node_, copy.to, copy.from, copy.bytes, kind)
                    : cudaGraphAddMemcpyNode1D(&node_, graph_, nullptr, 0, copy.to, copy.from,
                                               copy.bytes, kind);
        return error != hipSuccess ? error : cudaGraphInstantiate(&executable_, graph_, 0);
    }

    static constexpr int max_refusals = 8;  // each attempt costs time

    cudaGraph_t graph_ = nullptr;
    cudaGraphNode_t node_ = nullptr;
    cudaGraphExec_t executable_ = nullptr;
    Copy last_{};
    bool is_refused_ = false;  // last_ was, as copies of a pool's memory are
    int refusals_ = 0;
};

// By the driver, to which the kernel's function belongs.
class GraphKernel final : public PreparedKernel {
public:
    GraphKernel() = default;
    GraphKernel(const GraphKernel&) = delete;
    GraphKernel& operator=(const GraphKernel&) = delete;
    ~GraphKernel() override
    {
        if (executable_ != nullptr) (void)driver.graph_exec_destroy(executable_);
        if (graph_ != nullptr) (void)driver.graph_destroy(graph_);
    }

    hipError_t set(const KernelLaunch& kernel) override
    {
        void* list[] = {kernel.arguments};
        CUDA_KERNEL_NODE_PARAMS params{};
        params.func = kernel.function;
        params.gridDimX = kernel.blocks;
        params.blockDimX = kernel.threads;
        params.gridDimY = kernel.rows;
        params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
        params.kernelParams = list;
        return runtime_error(executable_ == nullptr
                                 ? make(params)
                                 : driver.graph_exec_set_kernel_node(executable_, node_, &params));
    }

    hipError_t start(hipStream_t stream) override
    {
        return runtime_error(driver.graph_launch(executable_, stream));
    }

private:
    CUresult make(const CUDA_KERNEL_NODE_PARAMS& params)
    {
        CUresult result = driver.graph_create(&graph_, 0);
        if (result == CUDA_SUCCESS)
            result = driver.graph_add_kernel_node(&node_, graph_, nullptr, 0, &params);
        if (result == CUDA_SUCCESS) result = driver.graph_instantiate(&executable_, graph_, 0);
        if (result == CUDA_SUCCESS || graph_ == nullptr) return result;
        (void)driver.graph_destroy(graph_);
        graph_ = nullptr;
        return result;
    }

    CUgraph graph_ = nullptr;
    CUgraphNode node_ = nullptr;
    CUgraphExec executable_ = nullptr;
};

}  // namespace

std::unique_ptr<PreparedCopy> make_prepared_copy() { return std::make_unique<GraphCopy>(); }

std::unique_ptr<PreparedKernel> make_prepared_kernel()
{
    if (driver.graph_launch == nullptr) return nullptr;
    return std::unique_ptr<PreparedKernel>(new (std::nothrow) GraphKernel);
}

}  // namespace hier::gpu
