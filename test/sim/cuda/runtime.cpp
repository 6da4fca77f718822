// SPDX-License-Identifier: BSD-3-Clause
// CUDA's runtime on the simulated HIP runtime. Their functions mean the same, but for contexts.
#include <cuda_runtime_api.h>

#include <cstring>

#include "contexts.hpp"
#include "hip.hpp"
#include "test/sim/hip_sim.h"
#include "test/sim/memory.hpp"

namespace {

template <class Function, class... Arguments>
cudaError_t without_context(Function function, Arguments... arguments)
{
    return static_cast<cudaError_t>(function(arguments...));
}

template <class Function, class... Arguments>
cudaError_t call(Function function, Arguments... arguments)
{
    cuda_sim::enter_runtime();
    return without_context(function, arguments...);
}

[[maybe_unused]] bool is_registered(const void* address)
{
    const auto block = hip_sim::find(address);
    return block && block->kind == hip_sim::Kind::registered;
}

[[maybe_unused]] bool is_inside(const void* to, const void* from)
{
    const auto a = hip_sim::find(to), b = hip_sim::find(from);
    return a && b && a->kind == hip_sim::Kind::device && b->kind == a->kind &&
           a->device == b->device;
}

// Does cudaMemcpy return early? Inside a device it leaves the copy to the default stream.
bool returns_early(const void* to, const void* from)
{
    const auto a = hip_sim::find(to), b = hip_sim::find(from);
    return a && b && a->is_on_device() && b->is_on_device() && a->device == b->device &&
           !cuda_sim::completes_copies() && !cuda_sim::completes_copies(to) &&
           !cuda_sim::completes_copies(from);
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count)
{
    cuda_sim::initialize();
    return without_context(hipGetDeviceCount, count);
}

cudaError_t cudaSetDevice(int device)
{
    const int error = hipSetDevice(device);
    if (error == 0) cuda_sim::set_device(device);
    return static_cast<cudaError_t>(error);
}

cudaError_t cudaGetDevice(int* device) { return without_context(hipGetDevice, device); }

// The simulated runtime still counts what was made on the device.
cudaError_t cudaDeviceReset()
{
    hip_sim_end_pinned();
    cuda_sim::end_context();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* address, int length, int device)
{
    return without_context(hipDeviceGetPCIBusId, address, length, device);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest)
{
    return call(hipDeviceGetStreamPriorityRange, least, greatest);
}

// Says that the runtime has to flush what a NIC has written.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int)
{
    switch (attribute) {
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
        *value = 0;
        return cudaSuccess;
    case cudaDevAttrGPUDirectRDMAWritesOrdering:
        *value = cudaGPUDirectRDMAWritesOrderingNone;
        return cudaSuccess;
    case cudaDevAttrGPUDirectRDMAFlushWritesOptions:
        *value = cudaFlushGPUDirectRDMAWritesOptionHost;
        return cudaSuccess;
    default:
        cuda_sim::give_up("this attribute of a device");
    }
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget,
                                               cudaFlushGPUDirectRDMAWritesScope)
{
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

const char* cudaGetErrorName(cudaError_t error) { return hipGetErrorName(error); }
const char* cudaGetErrorString(cudaError_t error) { return hipGetErrorString(error); }
cudaError_t cudaGetLastError() { return static_cast<cudaError_t>(hipGetLastError()); }
cudaError_t cudaPeekAtLastError() { return static_cast<cudaError_t>(hipPeekAtLastError()); }

cudaError_t cudaMalloc(void** memory, std::size_t bytes) { return call(hipMalloc, memory, bytes); }
cudaError_t cudaFree(void* memory) { return call(hipFree, memory); }

cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream)
{
    return call(hipMallocAsync, memory, bytes, stream);
}

cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream)
{
    return call(hipFreeAsync, memory, stream);
}

cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned flags)
{
    return call(hipMallocManaged, memory, bytes, flags);
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags)
{
    return call(hipHostMalloc, memory, bytes, flags);
}

cudaError_t cudaFreeHost(void* memory) { return call(hipHostFree, memory); }

cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned flags)
{
    if (cuda_sim::refuses("registering")) return cudaErrorNotSupported;
    return call(hipHostRegister, memory, bytes, flags);
}

cudaError_t cudaHostUnregister(void* memory) { return call(hipHostUnregister, memory); }

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory)
{
    return call(hipIpcGetMemHandle, reinterpret_cast<HipIpcHandle*>(handle), memory);
}

cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned flags)
{
    if (flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
    if (cuda_sim::refuses("mapping")) return cudaErrorPeerAccessUnsupported;
    HipIpcHandle same{};
    static_assert(sizeof same == sizeof handle);
    std::memcpy(&same, &handle, sizeof same);
    return call(hipIpcOpenMemHandle, memory, same, 0u);
}

cudaError_t cudaIpcCloseMemHandle(void* memory) { return call(hipIpcCloseMemHandle, memory); }

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind)
{
    cuda_sim::enter_runtime();
    if (returns_early(to, from))
        return call(hipMemcpyAsync, to, from, bytes, static_cast<int>(kind), nullptr);
    return call(hipMemcpy, to, from, bytes, static_cast<int>(kind));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return call(hipMemcpyAsync, to, from, bytes, static_cast<int>(kind), stream);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t bytes, std::size_t rows,
                              cudaMemcpyKind kind, cudaStream_t stream)
{
    return call(hipMemcpy2DAsync, to, to_pitch, from, from_pitch, bytes, rows,
                static_cast<int>(kind), stream);
}

#if CUDART_VERSION >= 12080
#if CUDART_VERSION >= 13000
cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const std::size_t* bytes,
                                 std::size_t count, cudaMemcpyAttributes*, std::size_t* first,
                                 std::size_t attributes, cudaStream_t stream)
#else
cudaError_t cudaMemcpyBatchAsync(void** to, void** from, std::size_t* bytes, std::size_t count,
                                 cudaMemcpyAttributes*, std::size_t* first, std::size_t attributes,
                                 std::size_t*, cudaStream_t stream)
#endif
{
    // As documented: no default stream, and no batch without bytes or attributes.
    if (stream == nullptr || count == 0 || attributes != 1 || first[0] != 0)
        return cudaErrorInvalidValue;
    if (cuda_sim::refuses("batches")) return cudaErrorNotSupported;
    for (std::size_t i = 0; i < count; i++) {
        if (bytes[i] == 0) return cudaErrorInvalidValue;
        if (cuda_sim::refuses("addresses") && (is_registered(to[i]) || is_registered(from[i])))
            cuda_sim::give_up("a batch with the host's address of registered memory");
        if (cuda_sim::refuses("unprepared") && bytes[i] <= std::size_t{4} << 20 &&
            is_inside(to[i], from[i]))
            cuda_sim::give_up("a copy inside a device that is no graph's");
        const cudaError_t error =
            cudaMemcpyAsync(to[i], from[i], bytes[i], cudaMemcpyDefault, stream);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}
#endif

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags)
{
    return call(hipEventCreateWithFlags, reinterpret_cast<void**>(event), flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) { return call(hipEventDestroy, event); }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return call(hipEventRecord, event, stream);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags)
{
    return call(hipStreamCreateWithFlags, reinterpret_cast<void**>(stream), flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority)
{
    return call(hipStreamCreateWithPriority, reinterpret_cast<void**>(stream), flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) { return call(hipStreamDestroy, stream); }
cudaError_t cudaStreamSynchronize(cudaStream_t s) { return call(hipStreamSynchronize, s); }

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    return call(hipStreamBeginCapture, stream, static_cast<int>(mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph)
{
    return call(hipStreamEndCapture, stream, reinterpret_cast<void**>(graph));
}

}  // extern "C"
