// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/cpu_access.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "base/log.hpp"
#include "gpu/runtime.hpp"
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

// Sets `max_block`, or returns why the CPU moves no blocks. `there` is memory of the device, `here` is
// pinned memory.
const char* compare(const gpu::CpuWindow& window, std::byte* there, std::byte* here,
                    std::size_t& max_block)
{
    std::byte bytes[largest];
    for (std::size_t i = 0; i < largest; i++) bytes[i] = static_cast<std::byte>(i * 167 + i / 256);
    const auto store = [&](std::size_t size) {
        window.store(there, bytes, size);
        window.flush(there);
    };
    store(largest);
    if (!copy(here, there, largest, gpu::Copy::to_host) || std::memcmp(here, bytes, largest) != 0)
        return "copies miss what it has stored";
    std::reverse(here, here + largest);
    const bool is_copied = copy(there, here, largest, gpu::Copy::from_host);
    window.load(bytes, there, largest);
    if (!is_copied || std::memcmp(bytes, here, largest) != 0)
        return "it misses what a copy has stored";
    for (std::size_t size = 64; size <= largest; size *= 4) {
        const auto loads = time_of([&] { window.load(bytes, there, size); });
        const auto stores = time_of([&] { store(size); });
        const auto copies = time_of([&] { (void)copy(here, there, size, gpu::Copy::to_host); });
        if (std::max(loads, stores) >= copies) break;
        max_block = size;
    }
    return max_block == 0 ? "copies are as quick" : nullptr;
}

std::string try_block(int device, std::byte* there, std::size_t& max_block)
{
    Allocation memory;
    std::string reason;
    bool is_pinned = false;
    const auto here = StagingPool::instance().borrow_shared(device, largest, is_pinned);
    if (!here || failed(gpu::inspect(there, memory))) return "no memory for a trial";
    const auto window = gpu::runtime()->cpu_window({there, largest}, memory, reason);
    if (!window) return "it does not reach that memory: " + reason;
    const char* const fault = compare(*window, there, here.get(), max_block);
    return fault != nullptr ? fault : "";
}

// Frees no memory, because that would wait for the application's kernels.
std::size_t try_access(int device)
{
    std::size_t max_block = 0;
    std::string fault = "no memory for a trial";
    if (const LentMemory::Block* const there = LentMemory::instance().take(device, largest)) {
        fault = try_block(device, there->base, max_block);
        LentMemory::instance().give_back(there->base);
    }
    if (!fault.empty())
        log(HIER_LOG_INFO, "device %d: the CPU moves no blocks of its memory: %s", device,
            fault.c_str());
    return max_block;
}

}  // namespace

std::size_t max_block_by_cpu(int device)
{
    static std::mutex mutex;
    static std::map<int, std::size_t> tried;
    const std::lock_guard lock(mutex);
    const auto [at, is_new] = tried.try_emplace(device, 0);
    if (is_new) at->second = try_access(device);
    return at->second;
}

const gpu::CpuWindow* ReachedBuffer::window(const Region& buffer)
{
    const Allocation& memory = buffer.memory;
    if (memory.kind != MemoryKind::device || !memory.is_exportable || memory.id == 0 ||
        buffer.base + buffer.length > memory.base + memory.length)
        return nullptr;
    const bool is_same = buffer.base == asked_.base && buffer.length == asked_.length;
    const bool is_known =
        memory == asked_.memory && (window_ ? window_->has(buffer.base, buffer.length) : is_same);
    if (is_known) return window_.get();
    std::string reason;
    asked_ = buffer;
    window_.reset();
    if (max_block_by_cpu(memory.device) > 0)
        window_ = gpu::runtime()->cpu_window({buffer.base, buffer.length}, memory, reason);
    if (!window_ && !reason.empty())
        log(HIER_LOG_DEBUG, "the CPU does not reach a buffer: %s", reason.c_str());
    return window_.get();
}

}  // namespace hier
