// SPDX-License-Identifier: BSD-3-Clause
// CUDA's graphs, with one copy at most. Graphs that a capture makes belong to the simulated HIP
// runtime.
#include <cuda_runtime_api.h>

#include <memory>

#include "contexts.hpp"
#include "test/sim/memory.hpp"

namespace {

struct Params {
    void* to;
    const void* from;
    std::size_t bytes;
};

struct Graph {
    Params copy{};
    bool has_copy = false;
};

// The event stands for the graph's memory in a device, because the runtime counts events that are
// left.
struct Executable {
    Params copy;
    cudaEvent_t event;
};

// Refuses memory of a pool, as CUDA 13.0's driver does if the graph was made with other memory.
bool is_taken(const Params& copy)
{
    for (const void* end : {static_cast<const void*>(copy.to), copy.from}) {
        const auto block = hip_sim::find(end);
        if (!block || block->kind == hip_sim::Kind::pool) return false;
    }
    return copy.bytes > 0;
}

cudaError_t set(Params& params, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind)
{
    const Params copy{to, from, bytes};
    if (kind != cudaMemcpyDeviceToDevice || !is_taken(copy)) return cudaErrorInvalidValue;
    params = copy;
    return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned)
{
    cuda_sim::enter_runtime();
    *graph = reinterpret_cast<cudaGraph_t>(new Graph);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete reinterpret_cast<Graph*>(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t*, std::size_t dependencies, void* to,
                                     const void* from, std::size_t bytes, cudaMemcpyKind kind)
{
    Graph& g = *reinterpret_cast<Graph*>(graph);
    if (g.has_copy || dependencies != 0) cuda_sim::give_up("a graph of several nodes");
    const cudaError_t error = set(g.copy, to, from, bytes, kind);
    g.has_copy = error == cudaSuccess;
    if (g.has_copy) *node = reinterpret_cast<cudaGraphNode_t>(graph);
    return error;
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from,
                                           std::size_t bytes, cudaMemcpyKind kind)
{
    return set(reinterpret_cast<Graph*>(node)->copy, to, from, bytes, kind);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long)
{
    if (cuda_sim::refuses("graphs")) return cudaErrorNotSupported;
    auto made = std::make_unique<Executable>();
    made->copy = reinterpret_cast<Graph*>(graph)->copy;
    const cudaError_t error = cudaEventCreateWithFlags(&made->event, cudaEventDisableTiming);
    if (error == cudaSuccess) *executable = reinterpret_cast<cudaGraphExec_t>(made.release());
    return error;
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t,
                                               void* to, const void* from, std::size_t bytes,
                                               cudaMemcpyKind kind)
{
    return set(reinterpret_cast<Executable*>(executable)->copy, to, from, bytes, kind);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    const Params& copy = reinterpret_cast<Executable*>(executable)->copy;
    return cudaMemcpyAsync(copy.to, copy.from, copy.bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    const std::unique_ptr<Executable> old(reinterpret_cast<Executable*>(executable));
    return cudaEventDestroy(old->event);
}

}  // extern "C"
