// SPDX-License-Identifier: BSD-3-Clause
// The driver's graphs, with one kernel each.
#include <cstddef>
#include <memory>
#include <vector>

#include "contexts.hpp"
#include "hip.hpp"
#include "test/sim/kernels.hpp"

namespace {

struct Kernel {
    CUfunction function = nullptr;
    unsigned blocks = 0, rows = 0, threads = 0;
    std::vector<std::byte> arguments;  // a copy of the one argument
};

struct Graph {
    std::unique_ptr<Kernel> kernel;
};

struct Executable {
    const Graph* made_from;
    Kernel kernel;
    CUevent
        event;  // stands for the graph's memory in a device, because events that are left are counted
};

CUresult result_of(int error) { return static_cast<CUresult>(error); }

Kernel kernel_of(const CUDA_KERNEL_NODE_PARAMS& params)
{
    if (params.gridDimZ != 1 || params.blockDimY != 1 || params.blockDimZ != 1 ||
        params.sharedMemBytes != 0 || params.extra != nullptr)
        cuda_sim::give_up("this launch by a graph");
    const auto* argument = static_cast<const std::byte*>(params.kernelParams[0]);
    return {params.func,
            params.gridDimX,
            params.gridDimY,
            params.blockDimX,
            {argument, argument + hip_sim::argument_bytes(params.func)}};
}

}  // namespace

extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned)
{
    *graph = reinterpret_cast<CUgraph>(new Graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    delete reinterpret_cast<Graph*>(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*,
                              std::size_t dependencies, const CUDA_KERNEL_NODE_PARAMS* params)
{
    Graph& g = *reinterpret_cast<Graph*>(graph);
    if (g.kernel != nullptr || dependencies != 0) cuda_sim::give_up("a graph of several nodes");
    g.kernel = std::make_unique<Kernel>(kernel_of(*params));
    *node = reinterpret_cast<CUgraphNode>(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, unsigned long long)
{
    if (cuda_sim::refuses("graphs")) return CUDA_ERROR_NOT_SUPPORTED;
    const Graph& g = *reinterpret_cast<Graph*>(graph);
    auto made = std::make_unique<Executable>(Executable{&g, *g.kernel, nullptr});
    const int error =
        hipEventCreateWithFlags(reinterpret_cast<void**>(&made->event), CU_EVENT_DISABLE_TIMING);
    if (error == 0) *executable = reinterpret_cast<CUgraphExec>(made.release());
    return result_of(error);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS* params)
{
    Executable& e = *reinterpret_cast<Executable*>(executable);
    if (reinterpret_cast<const Graph*>(node) != e.made_from) return CUDA_ERROR_INVALID_VALUE;
    e.kernel = kernel_of(*params);
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
    Kernel& kernel = reinterpret_cast<Executable*>(executable)->kernel;
    void* list[] = {kernel.arguments.data()};
    hip_sim::count_launch_by_graph();
    return result_of(hipModuleLaunchKernel(kernel.function, kernel.blocks, kernel.rows, 1,
                                           kernel.threads, 1, 1, 0, stream, list, nullptr));
}

CUresult cuGraphExecDestroy(CUgraphExec executable)
{
    const std::unique_ptr<Executable> old(reinterpret_cast<Executable*>(executable));
    return result_of(hipEventDestroy(old->event));
}

}  // extern "C"
