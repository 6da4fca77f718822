// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/runtime.hpp"

#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <map>
#include <mutex>

#include "base/log.hpp"
#include "gpu/modules.hpp"
#include "hier/hier.h"
#include "memory/readable.hpp"

namespace hier::gpu {
namespace {

std::mutex mutex;
std::atomic<Runtime*> opened{nullptr};
std::atomic<int> chosen{HIER_GPU_AUTO};
std::atomic<int> last_device{-1};
// The last search found that the process uses a runtime that cannot say what memory is.
std::atomic<bool> found_broken{false};
// Not destroyed at exit. In a child of fork() the runtime may not be touched. In other processes it
// may have been torn down earlier, as ROCm from 6.2 on does.
std::map<int, std::unique_ptr<Queue>>& queues = *new std::map<int, std::unique_ptr<Queue>>;
std::atomic<bool> may_peers_write{true};
std::atomic<bool> may_kernels_run{true};
WaitLimit wait_limit;  // under the mutex

// Milliseconds of a clock that moves every 1 to 10 ms. To read it takes 5 ns.
std::uint32_t coarse_time()
{
    timespec now{};
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint32_t>(now.tv_sec * 1000 + now.tv_nsec / 1'000'000);
}

// How many libraries the process has ever loaded.
std::uint32_t count_libraries()
{
    unsigned long long count = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            *static_cast<unsigned long long*>(out) = info->dlpi_adds;
            return 1;
        },
        &count);
    return static_cast<std::uint32_t>(count);
}

// The count may be older, by one tick of the coarse clock. A runtime that has just been loaded takes
// longer than that to set up a device (CUDA 13 on an H200: 1 s), so that before the next look none of
// its memory is in a call. To count takes a lock of the loader, where threads would meet in each call.
// (Four threads of 8 B calls made 3.1 times the calls of one then, and make 3.7 times as many now.)
std::uint32_t libraries_loaded()
{
    struct Look {
        std::uint32_t time, count;  // 0: none yet
    };
    static std::atomic<Look> last{Look{}};
    static_assert(std::atomic<Look>::is_always_lock_free);
    Look look = last.load(std::memory_order_relaxed);
    const std::uint32_t now = coarse_time();
    if (look.count == 0 || look.time != now) {
        look = {now, count_libraries()};
        last.store(look, std::memory_order_relaxed);
    }
    return look.count;
}

// Logs one line in the life of the process. The caller holds the lock.
void tell_once(const std::string& what, const std::string& reasons)
{
    static bool told = false;
    if (!told) log(HIER_LOG_ERROR, "%s: %s", what.c_str(), reasons.c_str());
    told = true;
}

Runtime* search(bool only_loaded, std::string& reasons)
{
    const std::lock_guard lock(mutex);
    const int choice = chosen;
    if (opened != nullptr || choice == HIER_GPU_NONE) return opened;
    bool any_is_broken = false;
    std::string lost;  // a runtime that the process uses, without a module for it
    for (const Module& c : modules()) {
        if (choice != HIER_GPU_AUTO && choice != c.choice) continue;
        const bool must_be_loaded = only_loaded && choice == HIER_GPU_AUTO;
        if (must_be_loaded && !uses(c.family)) continue;
        const Attempt attempt = open_module(c, must_be_loaded);
        if (attempt.runtime != nullptr) {
            opened = attempt.runtime;
            break;
        }
        reasons += (reasons.empty() ? "" : "; ") + std::string(c.file) + ": " + attempt.reason;
        if (!uses(c.family)) continue;
        any_is_broken = any_is_broken || attempt.is_broken;
        if (!attempt.has_module) lost = c.family;
    }
    found_broken = opened == nullptr && any_is_broken;
    if (opened == nullptr && choice != HIER_GPU_AUTO) {
        tell_once("coll_hier_gpu asks for a runtime that cannot be used", reasons);
    } else if (opened == nullptr && !lost.empty()) {
        tell_once(
            "this process has loaded " + lost +
                ", but no module for it can be opened, and calls on its device memory will fail",
            reasons);
    }
    return opened;
}

}  // namespace

void choose_runtime(int choice) { chosen = choice; }

void limit_waits(WaitLimit limit)
{
    const std::lock_guard lock(mutex);
    wait_limit = limit;
}

void let_peers_write(bool may) { may_peers_write = may; }

void let_kernels_run(bool may) { may_kernels_run = may; }

bool may_use_kernels()
{
    return may_kernels_run.load(std::memory_order_relaxed) && peers_may_write();
}

bool peers_may_write() { return may_peers_write.load(std::memory_order_relaxed); }

static Runtime* runtime_among(std::uint32_t loaded)
{
    static std::atomic<std::uint32_t> loaded_at_last_search{0};
    // Another thread's search may have opened a runtime since runtime() looked.
    if (loaded_at_last_search == loaded) return opened;
    std::string reasons;
    Runtime* const found = search(true, reasons);
    // Stored last, because other threads then take the answer for known.
    loaded_at_last_search = loaded;
    return found;
}

Runtime* runtime()
{
    if (Runtime* found = opened) return found;
    return chosen == HIER_GPU_NONE ? nullptr : runtime_among(libraries_loaded());
}

Runtime* find_runtime(std::string& reason)
{
    reason.clear();
    return search(false, reason);
}

// Is CUDA loaded, but not used yet? Then no memory belongs to CUDA. To ask for devices would be
// wrong, because CUDA reads CUDA_VISIBLE_DEVICES only once, at that moment.
static bool is_cuda_untouched(std::uint32_t loaded)
{
    constexpr int not_initialized = 3;  // CUDA_ERROR_NOT_INITIALIZED
    static std::atomic<std::uint32_t> loaded_at_last_look{0};
    static std::atomic<AsksForContext> asks{nullptr};
    if (chosen != HIER_GPU_AUTO) return false;
    if (loaded_at_last_look != loaded) {
        asks = find_loaded_cuda();
        loaded_at_last_look = loaded;
    }
    void* context = nullptr;
    const AsksForContext ask = asks;
    return ask != nullptr && ask(&context) == not_initialized;
}

// No runtime has said what the memory is. If the CPU cannot read it, it is not host memory. Then
// the search is worth repeating: a module may have been installed, or a runtime may have recovered.
static Status inspect_without(const void* address, const Runtime*& r)
{
    if (!found_broken || is_readable(address)) return Status::ok;
    std::string reasons;
    r = search(true, reasons);
    if (r != nullptr) return Status::ok;
    log(HIER_LOG_ERROR,
        "a buffer that is not in the host's memory, and no GPU runtime that works: %s",
        reasons.c_str());
    return Status::transport_error;
}

Inspector::Inspector() : runtime_(opened)
{
    if (runtime_ != nullptr || chosen == HIER_GPU_NONE) return;
    const std::uint32_t loaded = libraries_loaded();
    is_untouched_ = is_cuda_untouched(loaded);
    if (!is_untouched_) runtime_ = runtime_among(loaded);
}

bool Inspector::finds_host_only() const
{
    // In this order: a search that finds a runtime after all, perhaps that of inspect(), stores `opened` first.
    return is_untouched_ || (runtime_ == nullptr && !found_broken && opened == nullptr);
}

Status Inspector::inspect(const void* address, Allocation& allocation) const
{
    allocation = {};
    if (is_untouched_) return Status::ok;
    // An earlier call of inspect() may have found a runtime since.
    const Runtime* r = runtime_ != nullptr ? runtime_ : opened.load();
    if (r == nullptr) {
        const Status status = inspect_without(address, r);
        if (r == nullptr) return status;
    }
    const Status status = r->inspect(address, allocation);
    // The device of pinned memory is the one that was current at its allocation, often the first.
    int none = -1;
    if (allocation.kind == MemoryKind::pinned)
        last_device.compare_exchange_strong(none, allocation.device, std::memory_order_relaxed);
    else if (allocation.kind != MemoryKind::host && allocation.device >= 0)
        last_device.store(allocation.device, std::memory_order_relaxed);
    return status;
}

ContextPause::ContextPause(bool is_wanted) : runtime_(is_wanted ? opened.load() : nullptr)
{
    if (runtime_ != nullptr) contexts_ = runtime_->leave_contexts();
}

ContextPause::~ContextPause()
{
    if (runtime_ != nullptr) runtime_->enter_contexts(contexts_);
}

int used_device() { return last_device.load(std::memory_order_relaxed); }

Queue* queue(int device)
{
    const std::lock_guard lock(mutex);
    std::unique_ptr<Queue>& q = queues[device];
    if (!q && opened != nullptr) q = opened.load()->make_queue(device, wait_limit);
    return q.get();
}

namespace {

// The targets or the sources of several copies. A datatype may join several allocations. Each one
// must be inspected before it is copied, because on CUDA that waits for the application's own
// copies.
class Side {
public:
    Status see_first(const void* address)
    {
        const Status status = inspect(address, last_[0]);
        first_ = last_[0];
        return status;
    }
    const Allocation& first() const { return first_; }
    Status see(const void* base, std::size_t row_bytes, std::size_t rows, std::size_t pitch)
    {
        if (!is_of_device(first_))
            return Status::ok;  // staging memory, or a datatype in host memory
        const auto* at = static_cast<const std::byte*>(base);
        const std::size_t span = rows > 1 ? (rows - 1) * pitch + row_bytes : 1;
        Status status = see(at);
        if (failed(status) || has_seen(at, span)) return status;
        for (std::size_t row = 1; row < rows && !failed(status); row++)
            status = see(at + row * pitch);
        return status;
    }

private:
    bool has_seen(const std::byte* at, std::size_t span) const
    {
        return std::any_of(last_.begin(), last_.end(), [&](const Allocation& a) {
            return at >= a.base && at + span <= a.base + a.length;
        });
    }
    Status see(const std::byte* at)
    {
        if (has_seen(at, 1)) return Status::ok;
        std::swap(last_[0], last_[1]);
        return inspect(at, last_[0]);
    }

    Allocation first_;
    std::array<Allocation, 2> last_;
};

}  // namespace

static Status copy_by_queue(std::span<const Copy> copies)
{
    Side targets, sources;
    Status status = targets.see_first(copies[0].to);
    if (!failed(status)) status = sources.see_first(copies[0].from);
    for (std::size_t i = 0; i < copies.size() && !failed(status); i++) {
        const Copy& c = copies[i];
        status = targets.see(c.to, c.bytes, c.rows, c.to_pitch);
        if (!failed(status)) status = sources.see(c.from, c.bytes, c.rows, c.from_pitch);
    }
    if (failed(status)) return status;
    const Allocation &target = targets.first(), &source = sources.first();
    const int device = target.kind == MemoryKind::device ? target.device : source.device;
    Queue* q = device >= 0 ? queue(device) : nullptr;
    if (q == nullptr) return Status::transport_error;
    std::uint64_t ticket = 0;
    status = q->start(copies, {}, ticket);
    if (failed(status)) return status;
    return q->wait(ticket);
}

// Tries again without a queue. The copies stage a call that other ranks may have entered already,
// so an error here would fail the call on all ranks.
Status copy_now(std::span<const Copy> copies)
{
    if (copies.empty()) return Status::ok;
    const Status status = copy_by_queue(copies);
    const Runtime* r = opened;
    if (!failed(status) || status == Status::timed_out || r == nullptr) return status;
    return r->copy_plainly(copies);
}

void release_runtime()
{
    const std::lock_guard lock(mutex);
    queues.clear();
    if (opened != nullptr) opened.load()->release_cpu_windows();
}

}  // namespace hier::gpu
