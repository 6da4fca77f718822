// SPDX-License-Identifier: BSD-3-Clause
// ROCm. All remarks on versions come from the sources of ROCm 5.2 to 7.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "gpu/common/platform.hpp"
#include "gpu/common/report.hpp"
#include "gpu/rocm/foreign.hpp"

namespace hier::gpu {

const char* const platform_name = "ROCm";
const Platform platform = Platform::rocm;
// Sources disagree whether a kernel that starts next sees what a peer's SDMA has written.
const bool platform_needs_acquire = true;

bool platform_open(const char*&) { return true; }

// The queues of several processes run side by side.
bool platform_gives_turns(int) { return false; }

hipError_t inspect_pointer(const void* address, Allocation& allocation)
{
    hipPointerAttribute_t attributes{};
    allocation = {};
    void* base = nullptr;
    std::size_t length = 0;
    const auto pointer = reinterpret_cast<hipDeviceptr_t>(const_cast<void*>(address));
    const hipError_t range =
        hipMemGetAddressRange(reinterpret_cast<hipDeviceptr_t*>(&base), &length, pointer);
    if (range != hipSuccess) (void)hipGetLastError();
    // hipPointerGetAttributes would make HIP keep such memory as device 0's. Then the process may
    // hang at its end (rocm-systems, issue 7099).
    if (range == hipSuccess && length == foreign_length)
        return inspect_foreign(address, allocation);
    const hipError_t error = hipPointerGetAttributes(&attributes, address);
    if (error == hipErrorInvalidValue) {  // a pointer of the host, before 6.0
        (void)hipGetLastError();
        return hipSuccess;
    }
    if (error != hipSuccess) return error;
#if HIP_VERSION_MAJOR > 5 || (HIP_VERSION_MAJOR == 5 && HIP_VERSION_MINOR >= 7)
    const auto type = attributes.type;
#else
    const auto type = attributes.memoryType;
#endif
    if (attributes.isManaged != 0) {
        allocation.kind = MemoryKind::managed;
    } else if (type == hipMemoryTypeDevice) {
        allocation.kind = MemoryKind::device;
    } else if (type == hipMemoryTypeHost) {
        allocation.kind = MemoryKind::pinned;
    } else {
        return hipSuccess;
    }
    allocation.device = attributes.device;
    if (allocation.kind != MemoryKind::device) return hipSuccess;
    if (range != hipSuccess) return range;
    allocation.base = static_cast<std::byte*>(base);
    allocation.length = length;
    // HIP writes only 32 bits.
    return hipPointerGetAttribute(&allocation.id, HIP_POINTER_ATTRIBUTE_BUFFER_ID, pointer);
}

// Before 7.14 hipMemRetainAllocationHandle crashes on other memory, says HIP's change log. Up to
// 10.0 a copy to an imported segment can crash, because hsa_amd_pointer_info asks for the owner of
// a segment that has none (rocm-systems, pull request 11592).
bool platform_shares_segments(int version) { return version >= 100100000; }

hipError_t inspect_segment(const std::byte* address, VmmSegment& segment)
{
    Allocation found;
    const hipError_t error = inspect_pointer(address, found);
    segment = {found.base, found.length, found.id};
    const bool is_found = found.kind == MemoryKind::device && found.is_exportable;
    return error == hipSuccess && !is_found ? hipErrorInvalidValue : error;
}

DeviceScope::DeviceScope(int device)
{
    int current = device;
    error_ = hipGetDevice(&current);
    if (error_ == hipSuccess && current != device) {
        saved_ = current;
        error_ = hipSetDevice(device);
    }
    if (error_ != hipSuccess) (void)hipGetLastError();  // not every caller asks for error()
}

DeviceScope::~DeviceScope()
{
    const int device = static_cast<int>(saved_);
    if (device < 0 || hipSetDevice(device) == hipSuccess) return;
    // Tries once more. No caller could put this right, so none gets the error.
    const hipError_t error = hipSetDevice(device);
    (void)hipGetLastError();
    if (error != hipSuccess) (void)failed_with(error, "switching back to the application's device");
}

// A thread has a device and no contexts.
Contexts take_contexts() { return {}; }
void give_contexts(const Contexts&) {}

// On ROCm a use after hipDeviceReset is an error, not a crash. So contexts need no numbers.
std::uint64_t context_of(int) { return 1; }
std::uint64_t current_context() { return 1; }

namespace {

// hipMemcpyDeviceToDeviceNoCU: a copy by SDMA, without a kernel. Old headers do not have this
// value.
const hipMemcpyKind no_compute_unit = [] {
    hipMemcpyKind kind;
    const unsigned value = 1024;
    static_assert(sizeof kind == sizeof value);
    std::memcpy(&kind, &value, sizeof kind);
    return kind;
}();
std::atomic<bool> has_no_compute_unit{false};

// Is a copy that forces SDMA better than a plain one? The kind exists from 6.1 on. But up to 6.3 a
// plain copy to a peer takes the peer's own engine and never a kernel. A forced copy takes a
// general engine. Some builds of 7.15 leave a forced copy undone, without an error, if no engine is
// free (rocm-systems, pull requests 9100, 9652, 11318). No trial at the start can find that out.
bool is_better_forced(int version) { return version >= 60400000 && version < 71500000; }

// The memory of the trial: two blocks of a device, and a pinned block of the host. With pageable
// memory a copy would wait.
class Scratch {
public:
    static constexpr std::size_t words = 16 << 10, bytes = words * sizeof(std::uint32_t);

    Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch()
    {
        (void)hipFree(here);
        (void)hipFree(there);
        (void)hipHostFree(host);
    }
    hipError_t allocate()
    {
        hipError_t error = hipMalloc(&here, bytes);
        if (error == hipSuccess) error = hipMalloc(&there, bytes);
        if (error == hipSuccess) error = hipHostMalloc(&host, 2 * bytes, hipHostMallocDefault);
        return error;
    }
    std::uint32_t* sent() const { return static_cast<std::uint32_t*>(host); }
    std::uint32_t* received() const { return sent() + words; }

    void* here = nullptr;
    void* there = nullptr;
    void* host = nullptr;
};

// Copies a pattern to the device, from one block to the other, and back.
hipError_t try_no_compute_unit(hipStream_t stream, WaitLimit limit, Scratch& memory, bool& works)
{
    hipError_t error = memory.allocate();
    if (error != hipSuccess) return error;
    for (std::size_t i = 0; i < Scratch::words; i++) {
        memory.sent()[i] = static_cast<std::uint32_t>(i * 2654435761u + 1);
        memory.received()[i] = 0;
    }
    const std::size_t bytes = Scratch::bytes;
    error = hipMemcpyAsync(memory.here, memory.sent(), bytes, hipMemcpyDefault, stream);
    const bool is_taken =
        error == hipSuccess &&
        hipMemcpyAsync(memory.there, memory.here, bytes, no_compute_unit, stream) == hipSuccess;
    if (error == hipSuccess && !is_taken) (void)hipGetLastError();
    if (is_taken)
        error = hipMemcpyAsync(memory.received(), memory.there, bytes, hipMemcpyDefault, stream);
    if (!finish(stream, limit)) return hipErrorNotReady;
    const hipError_t end = hipStreamQuery(stream);
    if (error == hipSuccess) error = end;
    works = error == hipSuccess && is_taken &&
            std::equal(memory.sent(), memory.sent() + Scratch::words, memory.received());
    return error;
}

}  // namespace

hipError_t platform_try(hipStream_t stream, WaitLimit limit, TrialMemory& used)
{
    static std::mutex mutex;
    static bool tried = false, is_stuck = false;
    const std::lock_guard lock(mutex);
    if (tried) return hipSuccess;
    if (is_stuck) return hipErrorNotReady;  // does not wait a second time
    int version = 0;
    hipError_t error = hipRuntimeGetVersion(&version);
    if (error != hipSuccess) return error;
    bool works = false;
    if (is_better_forced(version)) {
        auto* const memory = new Scratch;
        used = {memory, [](void* scratch) { delete static_cast<Scratch*>(scratch); }};
        error = try_no_compute_unit(stream, limit, *memory, works);
    }
    is_stuck = error == hipErrorNotReady;
    if (error != hipSuccess) return error;
    has_no_compute_unit = works;
    tried = true;
    return hipSuccess;
}

// One stream for each peer. Every peer has a link and a copy engine of its own, and the copies of
// one stream follow one another.
std::size_t stream_of(int lane)
{
    return static_cast<std::size_t>(lane < 0 ? -lane - 1 : lane + 2);
}

namespace {

bool is_on_device(const void* address)
{
    Allocation allocation;
    return inspect_pointer(address, allocation) == hipSuccess &&
           allocation.kind == MemoryKind::device;
}

}  // namespace

hipError_t copy_all(hipStream_t stream, std::span<const Copy> copies)
{
    // One copy of 256 MiB has hung an MI355X.
    constexpr std::size_t largest = 128 << 20;
    for (const Copy& c : copies) {
        if (c.rows > 1) {
            const hipError_t error = copy_rows(stream, c);
            if (error != hipSuccess) return error;
            continue;
        }
        const bool between_devices =
            has_no_compute_unit && is_on_device(c.to) && is_on_device(c.from);
        const hipMemcpyKind kind = between_devices ? no_compute_unit : hipMemcpyDefault;
        for (std::size_t done = 0; done < c.bytes; done += largest) {
            const hipError_t error = hipMemcpyAsync(
                static_cast<std::byte*>(c.to) + done, static_cast<const std::byte*>(c.from) + done,
                std::min(largest, c.bytes - done), kind, stream);
            if (error != hipSuccess) return error;
        }
    }
    return hipSuccess;
}

// HIP refuses kernels of other targets when they are loaded.
bool platform_runs_kernels(int) { return true; }

unsigned compute_units_of(int device)
{
    int units = 0;
    if (hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, device) != hipSuccess)
        (void)hipGetLastError();
    return units > 0 ? static_cast<unsigned>(units) : 1;
}

// Without a flag, a kernel may read such a word from its own cache for ever.
hipError_t allocate_coherent(void** memory, std::size_t bytes)
{
#ifdef hipDeviceMallocUncached
    constexpr unsigned flags = hipDeviceMallocUncached;
#else
    constexpr unsigned flags = hipDeviceMallocFinegrained;
#endif
    return hipExtMallocWithFlags(memory, bytes, flags);
}

std::unique_ptr<PreparedCopy> make_prepared_copy() { return nullptr; }
std::unique_ptr<PreparedKernel> make_prepared_kernel() { return nullptr; }

// hipStreamWriteValue is a kernel.
bool can_store_words(int) { return false; }

hipError_t store_words(hipStream_t, std::span<const Word>) { return hipErrorInvalidValue; }

// The runtime has no call for a flush, only the address of a register
// (hipDeviceAttributeHdpMemFlushCntl).
RdmaFlush rdma_flush_of(int) { return RdmaFlush::by_read; }

hipError_t flush_rdma_writes() { return hipErrorInvalidValue; }

}  // namespace hier::gpu
