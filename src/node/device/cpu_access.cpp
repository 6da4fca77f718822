// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/cpu_access.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

#include "base/log.hpp"
#include "gpu/runtime.hpp"
#include "memory/readable.hpp"
#include "memory/staging_pool.hpp"
#include "node/device/exports/lent_memory.hpp"

namespace hier {
namespace {

constexpr std::size_t largest = 16384;

// The quickest of some runs. The first ones also make queues and mappings.
template <class Work> std::chrono::steady_clock::duration time_of(Work&& work)
{
    auto quickest = std::chrono::steady_clock::duration::max();
    for (int run = 0; run < 5; run++) {
        const auto start = std::chrono::steady_clock::now();
        work();
        quickest = std::min(quickest, std::chrono::steady_clock::now() - start);
    }
    return quickest;
}

bool copy(std::byte* to, const std::byte* from, std::size_t bytes, int lane)
{
    const gpu::Copy copy{to, from, bytes, lane};
    return !failed(gpu::copy_now({&copy, 1}));
}

// Sets max_block, or returns why the CPU moves no blocks. `there` is memory of the device, `here` is
// pinned memory.
const char* compare(CpuAccess& access, std::byte* there, std::byte* here)
{
    std::byte bytes[largest];
    for (std::size_t i = 0; i < largest; i++) bytes[i] = static_cast<std::byte>(i * 167 + i / 256);
    const auto store = [&](std::size_t size) {
        std::memcpy(there, bytes, size);
        access.flush(there);
    };
    store(largest);
    if (!copy(here, there, largest, gpu::Copy::to_host) || std::memcmp(here, bytes, largest) != 0)
        return "copies miss what it has stored";
    std::reverse(here, here + largest);
    if (!copy(there, here, largest, gpu::Copy::from_host) ||
        std::memcmp(std::memcpy(bytes, there, largest), here, largest) != 0)
        return "it misses what a copy has stored";
    for (std::size_t size = 64; size <= largest; size *= 4) {
        const auto loads = time_of([&] { std::memcpy(bytes, there, size); });
        const auto stores = time_of([&] { store(size); });
        const auto copies = time_of([&] { (void)copy(here, there, size, gpu::Copy::to_host); });
        if (std::max(loads, stores) >= copies) break;
        access.max_block = size;
    }
    return access.max_block == 0 ? "copies are as quick" : nullptr;
}

// Frees no memory, because that would wait for the application's kernels.
const char* try_access(int device, CpuAccess& access)
{
    access.reach = gpu::runtime()->cpu_reach(device);
    if (!access.reach.is_there) return "it does not reach that memory";
    const LentMemory::Block* const there = LentMemory::instance().take(device, largest);
    if (there == nullptr) return "no memory for a trial";
    bool is_pinned = false;
    const auto here = StagingPool::instance().borrow_shared(device, largest, is_pinned);
    const char* const fault = !here || !is_readable(there->base)
                                  ? "no memory for a trial"
                                  : compare(access, there->base, here.get());
    LentMemory::instance().give_back(there->base);
    return fault;
}

}  // namespace

// Stores may wait in the CPU, on the bus or in the device. The load waits for those on the bus.
void CpuAccess::flush(const std::byte* stored) const
{
#ifdef __x86_64__
    __builtin_ia32_sfence();  // the mapping may combine stores, in any order
#endif
    if (reach.flush != nullptr) *reach.flush = 1;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    (void)*static_cast<const volatile std::byte*>(stored);
}

const CpuAccess& cpu_access(int device)
{
    static std::mutex mutex;
    static std::map<int, CpuAccess> tried;
    const std::lock_guard lock(mutex);
    const auto [at, is_new] = tried.try_emplace(device);
    const char* const fault = is_new ? try_access(device, at->second) : nullptr;
    if (fault != nullptr)
        log(HIER_LOG_INFO, "device %d: the CPU moves no blocks of its memory: %s", device, fault);
    return at->second;
}

bool ReachedBuffer::is_reached(const Region& buffer)
{
    const Allocation& memory = buffer.memory;
    if (memory.kind != MemoryKind::device || !memory.is_exportable || memory.id == 0 ||
        buffer.base + buffer.length > memory.base + memory.length)
        return false;
    if (memory != asked_)
        is_readable_ = cpu_access(memory.device).max_block > 0 && is_readable(buffer.base);
    asked_ = memory;
    return is_readable_;
}

}  // namespace hier
