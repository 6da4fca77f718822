// SPDX-License-Identifier: BSD-3-Clause
// CUDA's driver on the simulated HIP runtime: memory and streams.
#include <map>
#include <mutex>
#include <set>

#include "contexts.hpp"
#include "hip.hpp"
#include "test/sim/memory.hpp"

using hip_sim::Block;
using hip_sim::Kind;

namespace {

std::mutex mutex;
std::map<CUdeviceptr, std::size_t> reservations;
std::set<std::uint64_t> completing;  // ids of blocks with CU_POINTER_ATTRIBUTE_SYNC_MEMOPS

CUresult result_of(int error) { return static_cast<CUresult>(error); }

template <class T> void* pointer(T value) { return reinterpret_cast<void*>(value); }

HipAllocationProp hip(const CUmemAllocationProp& wanted)
{
    HipAllocationProp same{};
    same.type = wanted.type;
    same.handle_type = wanted.requestedHandleTypes;
    same.location = {wanted.location.type, wanted.location.id};
    return same;
}

// For memory that the application maps, CUDA tells the reserved range.
void range_of(const Block& block, CUdeviceptr& base, std::size_t& bytes)
{
    base = reinterpret_cast<CUdeviceptr>(block.base);
    bytes = block.bytes;
    if (block.kind != Kind::segment) return;
    const std::lock_guard lock(mutex);
    auto next = reservations.upper_bound(base);
    if (next == reservations.begin()) return;
    base = (--next)->first;
    bytes = next->second;
}

void tell(CUpointer_attribute attribute, const Block& block, void* out)
{
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    range_of(block, base, bytes);
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *static_cast<unsigned*>(out) = block.is_on_device() || block.kind == Kind::managed
                                           ? CU_MEMORYTYPE_DEVICE
                                           : CU_MEMORYTYPE_HOST;
        return;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *static_cast<unsigned*>(out) = block.kind == Kind::managed ? 1 : 0;
        return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(out) = block.device;
        return;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *static_cast<unsigned long long*>(out) = block.id;
        return;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *static_cast<CUdeviceptr*>(out) = base;
        return;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *static_cast<std::size_t*>(out) = bytes;
        return;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *static_cast<void**>(out) = block.kind == Kind::pool ? &mutex : nullptr;
        return;
    default:
        cuda_sim::give_up("this attribute of a pointer");
    }
}

}  // namespace

namespace cuda_sim {

bool completes_copies(const void* memory)
{
    const auto block = hip_sim::find(memory);
    const std::lock_guard lock(mutex);
    return block && completing.contains(block->id);
}

}  // namespace cuda_sim

extern "C" {

// Other libraries may find this driver. For them there is no device.
CUresult cuInit(unsigned) { return CUDA_ERROR_NO_DEVICE; }
CUresult cuDeviceGetCount(int*) { return CUDA_ERROR_NO_DEVICE; }

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice)
{
    constexpr auto mps_enabled = static_cast<CUdevice_attribute>(133);
    if (attribute == mps_enabled) {
        *value = cuda_sim::refuses("mps") ? 0 : 1;
        return CUDA_SUCCESS;
    }
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
        *value = 9;
        return CUDA_SUCCESS;
    }
    if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) {
        *value = 120;
        return CUDA_SUCCESS;
    }
    if (attribute != CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS &&
        attribute != CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)
        cuda_sim::give_up("this attribute of a device");
    *value = cuda_sim::refuses("addresses") ? 0 : 1;
    return CUDA_SUCCESS;
}

// If the memory is not CUDA's, every answer is 0.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values,
                                CUdeviceptr address)
{
    if (!cuda_sim::is_initialized()) return CUDA_ERROR_NOT_INITIALIZED;
    const auto block = hip_sim::find(pointer(address));
    for (unsigned i = 0; i < count && block; i++) tell(attributes[i], *block, values[i]);
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void*, CUpointer_attribute attribute, CUdeviceptr address)
{
    const auto block = hip_sim::find(pointer(address));
    if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !block) return CUDA_ERROR_INVALID_VALUE;
    if (block->kind == Kind::segment) return CUDA_ERROR_NOT_SUPPORTED;
    if (block->kind == Kind::managed) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(mutex);
    if (block->kind != Kind::pool) completing.insert(block->id);
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address)
{
    if (cuda_sim::current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const auto block = hip_sim::find(pointer(address));
    if (!block) return CUDA_ERROR_NOT_FOUND;
    *base = reinterpret_cast<CUdeviceptr>(block->base);
    *bytes = block->bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* base, std::size_t bytes, std::size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags)
{
    void* reserved = nullptr;
    const int error = hipMemAddressReserve(&reserved, bytes, alignment, pointer(wanted), flags);
    *base = reinterpret_cast<CUdeviceptr>(reserved);
    const std::lock_guard lock(mutex);
    if (error == 0) reservations[*base] = bytes;
    return result_of(error);
}

CUresult cuMemAddressFree(CUdeviceptr base, std::size_t bytes)
{
    const int error = hipMemAddressFree(pointer(base), bytes);
    const std::lock_guard lock(mutex);
    if (error == 0) reservations.erase(base);
    return result_of(error);
}

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp* wanted,
                                       CUmemAllocationGranularity_flags flags)
{
    const HipAllocationProp same = hip(*wanted);
    return result_of(hipMemGetAllocationGranularity(bytes, &same, flags));
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* wanted, unsigned long long flags)
{
    const HipAllocationProp same = hip(*wanted);
    return result_of(hipMemCreate(reinterpret_cast<void**>(handle), bytes, &same, flags));
}

CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    return result_of(hipMemExportToShareableHandle(out, pointer(handle), type, flags));
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shared,
                                        CUmemAllocationHandleType type)
{
    return result_of(
        hipMemImportFromShareableHandle(reinterpret_cast<void**>(handle), shared, type));
}

CUresult cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    return result_of(hipMemMap(pointer(at), bytes, offset, pointer(handle), flags));
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return result_of(hipMemRelease(pointer(handle)));
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address)
{
    return result_of(hipMemRetainAllocationHandle(reinterpret_cast<void**>(handle), address));
}

CUresult cuMemSetAccess(CUdeviceptr at, std::size_t bytes, const CUmemAccessDesc* access,
                        std::size_t count)
{
    return result_of(hipMemSetAccess(pointer(at), bytes, access, count));
}

CUresult cuMemUnmap(CUdeviceptr at, std::size_t bytes)
{
    return result_of(hipMemUnmap(pointer(at), bytes));
}

CUresult cuModuleLoad(CUmodule* module, const char* file)
{
    if (cuda_sim::refuses("kernels")) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    return result_of(hipModuleLoad(reinterpret_cast<void**>(module), file));
}

CUresult cuModuleUnload(CUmodule module) { return result_of(hipModuleUnload(module)); }

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name)
{
    return result_of(hipModuleGetFunction(reinterpret_cast<void**>(function), module, name));
}

CUresult cuLaunchKernel(CUfunction function, unsigned blocks_x, unsigned blocks_y,
                        unsigned blocks_z, unsigned threads_x, unsigned threads_y,
                        unsigned threads_z, unsigned shared, CUstream stream, void** arguments,
                        void** extra)
{
    return result_of(hipModuleLaunchKernel(function, blocks_x, blocks_y, blocks_z, threads_x,
                                           threads_y, threads_z, shared, stream, arguments, extra));
}

CUresult cuEventQuery(CUevent event) { return result_of(hipEventQuery(event)); }

CUresult cuStreamQuery(CUstream stream) { return result_of(hipStreamQuery(stream)); }

CUresult cuStreamSynchronize(CUstream stream)
{
    const bool is_default = stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
    return result_of(hipStreamSynchronize(is_default ? nullptr : stream));
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations,
                            unsigned flags)
{
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        const auto& write = operations[i].writeValue;
        if (write.operation != CU_STREAM_MEM_OP_WRITE_VALUE_64)
            cuda_sim::give_up("this operation of a stream");
        if (cuda_sim::refuses("addresses"))
            cuda_sim::give_up("a word at the host's address of registered memory");
        const int error =
            hipStreamWriteValue64(stream, pointer(write.address), write.value64, write.flags);
        if (error != 0) return result_of(error);
    }
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode)
{
    return result_of(hipThreadExchangeStreamCaptureMode(reinterpret_cast<int*>(mode)));
}

}  // extern "C"
