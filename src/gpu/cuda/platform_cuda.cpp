// SPDX-License-Identifier: BSD-3-Clause
// CUDA: pointers, contexts and flushes, by the driver.
#include <dlfcn.h>

#include <array>
#include <atomic>

#include "gpu/common/platform.hpp"
#include "gpu/cuda/driver.hpp"

namespace hier::gpu {

const char* const platform_name = "CUDA";
const Platform platform = Platform::cuda;
const bool platform_needs_acquire = false;

Driver driver;

namespace {

template <class F> bool find(void* library, const char* name, F& function)
{
    function = reinterpret_cast<F>(dlsym(library, name));
    return function != nullptr;
}

// Makes every later copy of the application in the current context complete before it returns, and
// waits for earlier ones. With a driver that cannot do the former, every call of this function
// waits.
hipError_t complete_copies_of_context()
{
    constexpr unsigned sync_memops = 0x80;  // CU_CTX_SYNC_MEMOPS
    CUcontext context = nullptr;
    unsigned flags = 0;
    if (driver.context_get(&context) != CUDA_SUCCESS || context == nullptr) return hipSuccess;
    CUresult result = driver.context_get_flags(&flags);
    if (result != CUDA_SUCCESS || (flags & sync_memops) != 0) return runtime_error(result);
    if (driver.context_set_flags != nullptr) (void)driver.context_set_flags(flags | sync_memops);
    result = driver.stream_synchronize(CU_STREAM_LEGACY);
    if (result == CUDA_SUCCESS) result = driver.stream_synchronize(CU_STREAM_PER_THREAD);
    return runtime_error(result);
}

bool is_of_pool(const Allocation& allocation)
{
    CUmemoryPool pool = nullptr;
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
    void* value = &pool;
    return driver.pointer_get_attributes(1, &attribute, &value,
                                         reinterpret_cast<CUdeviceptr>(allocation.base)) ==
               CUDA_SUCCESS &&
           pool != nullptr;
}

hipError_t complete_copies_of(const Allocation& allocation, bool& by_context)
{
    const unsigned yes = 1;
    const CUresult result = driver.pointer_set_attribute(
        &yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, reinterpret_cast<CUdeviceptr>(allocation.base));
    // CUDA refuses this for VMM segments, and accepts it without effect for memory of a pool.
    by_context =
        result != CUDA_SUCCESS || allocation.kind == MemoryKind::managed || is_of_pool(allocation);
    hipError_t error = by_context ? complete_copies_of_context() : hipSuccess;
    if (allocation.device < 0) return error;  // managed memory whose pages are with the CPU
    const DeviceScope scope(allocation.device);
    if (error == hipSuccess) error = scope.error();
    if (error == hipSuccess && by_context) error = complete_copies_of_context();
    return error != hipSuccess ? error : runtime_error(driver.stream_synchronize(CU_STREAM_LEGACY));
}

// Waits for the application's copies into an allocation that is seen for the first time.
//
// cudaMemcpy out of pageable memory, or inside a device, returns before its data is there. Our
// streams do not wait for the default stream. So the first sight of an allocation waits for that
// stream, and then makes the driver complete later copies before they return: copies of this
// allocation or, if that is impossible, all copies of two contexts. These are the device's context
// and the current one.
hipError_t adopt(const Allocation& allocation)
{
    // If two allocations shared a slot, every call would wait for both of them again.
    static std::array<std::atomic<std::uint64_t>, 1 << 16> known{};
    auto& slot = known[allocation.id % known.size()];
    const std::uint64_t seen = slot.load(std::memory_order_relaxed);
    const std::uint64_t by_itself = allocation.id * 2 + 2;  // never 0, the first value of the slots
    if (seen == by_itself) return hipSuccess;
    if (seen == by_itself + 1) return complete_copies_of_context();
    bool by_context = false;
    const hipError_t error = complete_copies_of(allocation, by_context);
    if (error == hipSuccess)
        slot.store(by_itself + (by_context ? 1 : 0), std::memory_order_relaxed);
    return error;
}

// The driver's name for a function of cuda.h, which may have a version: cuGraphAddKernelNode_v2.
#define HIER_TEXT(NAME) #NAME
#define HIER_DRIVER_NAME(FUNCTION) HIER_TEXT(FUNCTION)

void find_graphs(void* library)
{
    const bool has_all =
        find(library, HIER_DRIVER_NAME(cuGraphAddKernelNode), driver.graph_add_kernel_node) &&
        find(library, HIER_DRIVER_NAME(cuGraphCreate), driver.graph_create) &&
        find(library, HIER_DRIVER_NAME(cuGraphDestroy), driver.graph_destroy) &&
        find(library, "cuGraphInstantiateWithFlags", driver.graph_instantiate) &&
        find(library, HIER_DRIVER_NAME(cuGraphExecDestroy), driver.graph_exec_destroy) &&
        find(library, HIER_DRIVER_NAME(cuGraphExecKernelNodeSetParams),
             driver.graph_exec_set_kernel_node) &&
        find(library, HIER_DRIVER_NAME(cuGraphLaunch), driver.graph_launch);
    if (!has_all) driver.graph_launch = nullptr;
}

}  // namespace

bool platform_open(const char*& cause)
{
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    cause = "libcuda.so.1 cannot be opened or is too old";
    if (library != nullptr) (void)find(library, "cuCtxSetFlags", driver.context_set_flags);
    if (library != nullptr) (void)find(library, "cuCtxGetId", driver.context_get_id);
    if (library != nullptr) find_graphs(library);
    return library != nullptr && find(library, "cuCtxGetCurrent", driver.context_get) &&
           find(library, "cuCtxSetCurrent", driver.context_set) &&
           find(library, "cuCtxPopCurrent_v2", driver.context_pop) &&
           find(library, "cuCtxPushCurrent_v2", driver.context_push) &&
           find(library, "cuCtxGetFlags", driver.context_get_flags) &&
           find(library, "cuDeviceGetAttribute", driver.device_get_attribute) &&
           find(library, "cuDevicePrimaryCtxGetState", driver.primary_context_get_state) &&
           find(library, "cuDevicePrimaryCtxRetain", driver.primary_context_retain) &&
           find(library, "cuDevicePrimaryCtxRelease_v2", driver.primary_context_release) &&
           find(library, "cuPointerGetAttributes", driver.pointer_get_attributes) &&
           find(library, "cuPointerSetAttribute", driver.pointer_set_attribute) &&
           find(library, "cuEventQuery", driver.event_query) &&
           find(library, "cuLaunchKernel", driver.kernel_launch) &&
           find(library, "cuModuleGetFunction", driver.module_get_function) &&
           find(library, "cuModuleLoad", driver.module_load) &&
           find(library, "cuModuleUnload", driver.module_unload) &&
           find(library, "cuMemAddressFree", driver.memory_address_free) &&
           find(library, "cuMemAddressReserve", driver.memory_address_reserve) &&
           find(library, "cuMemExportToShareableHandle", driver.memory_export) &&
           find(library, "cuMemGetAddressRange_v2", driver.memory_address_range) &&
           find(library, "cuMemImportFromShareableHandle", driver.memory_import) &&
           find(library, "cuMemMap", driver.memory_map) &&
           find(library, "cuMemRelease", driver.memory_release) &&
           find(library, "cuMemRetainAllocationHandle", driver.memory_retain) &&
           find(library, "cuMemSetAccess", driver.memory_set_access) &&
           find(library, "cuMemUnmap", driver.memory_unmap) &&
           find(library, "cuStreamQuery", driver.stream_query) &&
           find(library, "cuStreamSynchronize", driver.stream_synchronize) &&
           find(library, "cuStreamBatchMemOp_v2", driver.stream_batch_mem_op) &&
           find(library, "cuThreadExchangeStreamCaptureMode", driver.thread_exchange_capture_mode);
}

// The driver's call, unlike the runtime's, makes no context.
hipError_t inspect_pointer(const void* address, Allocation& allocation)
{
    unsigned kind = 0, managed = 0;
    int device = -1;
    unsigned long long id = 0;
    CUdeviceptr base = 0;
    std::size_t length = 0;
    std::array attributes{CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
                          CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,   CU_POINTER_ATTRIBUTE_BUFFER_ID,
                          CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    std::array<void*, 6> values{&kind, &managed, &device, &id, &base, &length};
    allocation = {};
    const CUresult result =
        driver.pointer_get_attributes(attributes.size(), attributes.data(), values.data(),
                                      reinterpret_cast<CUdeviceptr>(address));
    // CUDA is not used yet in this process, or not used any more. So this is not CUDA's memory.
    if (result == CUDA_ERROR_NOT_INITIALIZED || result == CUDA_ERROR_DEINITIALIZED)
        return hipSuccess;
    if (result != CUDA_SUCCESS || kind == 0) return runtime_error(result);
    allocation.kind = managed != 0                   ? MemoryKind::managed
                      : kind == CU_MEMORYTYPE_DEVICE ? MemoryKind::device
                                                     : MemoryKind::pinned;
    allocation.device = device;
    allocation.base = reinterpret_cast<std::byte*>(base);
    allocation.length = length;
    allocation.id = id;
    return allocation.kind == MemoryKind::pinned ? hipSuccess : adopt(allocation);
}

bool platform_shares_segments(int) { return true; }

// inspect_pointer() will not do: it gives the reserved range, and not the segment in it.
hipError_t inspect_segment(const std::byte* address, VmmSegment& segment)
{
    const auto at = reinterpret_cast<CUdeviceptr>(address);
    CUdeviceptr base = 0;
    unsigned long long id = 0;
    CUmemoryPool pool = nullptr;
    std::array attributes{CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
    std::array<void*, 2> values{&id, &pool};
    CUresult result = driver.memory_address_range(&base, &segment.length, at);
    if (result == CUDA_SUCCESS)
        result =
            driver.pointer_get_attributes(attributes.size(), attributes.data(), values.data(), at);
    // To export memory of a pool would export all of the pool's memory there.
    if (result == CUDA_SUCCESS && pool != nullptr) return hipErrorInvalidValue;
    segment.base = reinterpret_cast<std::byte*>(base);
    segment.id = id;
    return runtime_error(result);
}

DeviceScope::DeviceScope(int device)
{
    CUcontext context = nullptr;
    error_ = runtime_error(driver.context_get(&context));
    saved_ = reinterpret_cast<std::intptr_t>(context);
    if (error_ == hipSuccess) error_ = hipSetDevice(device);
}

DeviceScope::~DeviceScope() { driver.context_set(reinterpret_cast<CUcontext>(saved_)); }

Contexts take_contexts()
{
    Contexts taken;
    CUcontext context = nullptr;
    while (taken.count < taken.all.size() && driver.context_pop(&context) == CUDA_SUCCESS)
        taken.all[taken.count++] = context;
    return taken;
}

void give_contexts(const Contexts& contexts)
{
    for (std::size_t i = contexts.count; i > 0; i--)
        (void)driver.context_push(static_cast<CUcontext>(contexts.all[i - 1]));
}

namespace {

std::uint64_t number_of(CUcontext context)
{
    unsigned long long number = 0;
    if (driver.context_get_id == nullptr) return 1;
    return driver.context_get_id(context, &number) == CUDA_SUCCESS ? number : 0;
}

}  // namespace

// A number, not the context's address: after cudaDeviceReset a new context may have the same
// address.
std::uint64_t context_of(int device)
{
    const CapturePass pass;
    unsigned flags = 0;
    int is_active = 0;
    CUcontext context = nullptr;
    if (driver.primary_context_get_state(device, &flags, &is_active) != CUDA_SUCCESS ||
        is_active == 0 || driver.primary_context_retain(&context, device) != CUDA_SUCCESS)
        return 0;
    const std::uint64_t number = number_of(context);
    (void)driver.primary_context_release(device);
    return number;
}

std::uint64_t current_context() { return number_of(nullptr); }

// Only MPS lets processes use a device together.
bool platform_gives_turns(int device)
{
    // CU_DEVICE_ATTRIBUTE_MPS_ENABLED, which older headers lack.
    constexpr auto mps_enabled = static_cast<CUdevice_attribute>(133);
    int has_mps = 0;
    return driver.device_get_attribute(&has_mps, mps_enabled, device) != CUDA_SUCCESS ||
           has_mps == 0;
}

// The oldest target is sm_80.
bool platform_runs_kernels(int device)
{
    int major = 0;
    (void)driver.device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    return major >= 8;
}

// With a limit of MPS this is the limited number.
unsigned compute_units_of(int device)
{
    int units = 0;
    (void)driver.device_get_attribute(&units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    return units > 0 ? static_cast<unsigned>(units) : 1;
}

hipError_t allocate_coherent(void** memory, std::size_t bytes) { return hipMalloc(memory, bytes); }

hipError_t platform_try(hipStream_t, WaitLimit, TrialMemory&) { return hipSuccess; }

// Writes must be ordered for the owner alone, because only the owner's kernels and copy engines
// read what lands. In a ring the NIC reads it too, but its reads do not pass its writes.
//
// A CPU that shares its page tables with the GPU (Grace) is an exception. There the data may reach
// the GPU by PCI and the signal may reach the CPU on another way, so the GPU's order does not help.
RdmaFlush rdma_flush_of(int device)
{
    int ordering = 0, options = 0, shares_tables = 0;
    if (cudaDeviceGetAttribute(&shares_tables, cudaDevAttrPageableMemoryAccessUsesHostPageTables,
                               device) != cudaSuccess ||
        cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, device) !=
            cudaSuccess ||
        cudaDeviceGetAttribute(&options, cudaDevAttrGPUDirectRDMAFlushWritesOptions, device) !=
            cudaSuccess) {
        (void)cudaGetLastError();
        return RdmaFlush::by_read;
    }
    if (shares_tables != 0) return RdmaFlush::by_read;
    if (ordering >= cudaGPUDirectRDMAWritesOrderingOwner) return RdmaFlush::none;
    const bool is_offered = (options & cudaFlushGPUDirectRDMAWritesOptionHost) != 0;
    return is_offered ? RdmaFlush::by_runtime : RdmaFlush::by_read;
}

hipError_t flush_rdma_writes()
{
    return cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                              cudaFlushGPUDirectRDMAWritesToOwner);
}

}  // namespace hier::gpu
