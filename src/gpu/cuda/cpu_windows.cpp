// SPDX-License-Identifier: BSD-3-Clause
// Windows to memory of NVIDIA's GPUs, by GDRCopy. To pin memory takes 10 us to 1 ms, so windows are kept,
// and cover some more than the buffer. But they cover no whole allocation: PyTorch's pools have many GiB,
// and some GPUs show the CPU only 256 MiB at a time.
#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <mutex>

#include "gpu/common/platform.hpp"
#include "gpu/cuda/driver.hpp"
#include "gpu/cuda/gdrcopy.hpp"

namespace hier::gpu {
namespace {

constexpr std::size_t max_windows = 32, max_refused = 32;
constexpr std::uintptr_t around = 2 << 20;  // windows begin and end at multiples of this
constexpr std::size_t max_buffer = 16 << 20;

std::uintptr_t number(const std::byte* address)
{
    return reinterpret_cast<std::uintptr_t>(address);
}
std::uintptr_t down(std::uintptr_t address, std::uintptr_t to) { return address / to * to; }
std::uintptr_t up(std::uintptr_t address, std::uintptr_t to) { return down(address + to - 1, to); }

// No further than the memory's last page, which it may share with other memory. One page at least.
std::span<const std::byte> pages_around(std::span<const std::byte> buffer,
                                        std::span<const std::byte> memory)
{
    const std::uintptr_t first = number(buffer.data());
    const std::uintptr_t end = first + std::max<std::size_t>(buffer.size(), 1);
    const std::uintptr_t memory_end = number(memory.data() + memory.size());
    const std::uintptr_t base =
        std::max(down(first, around), down(number(memory.data()), Gdrcopy::page));
    const std::uintptr_t limit = std::min(up(end, around), up(memory_end, Gdrcopy::page));
    return {reinterpret_cast<const std::byte*>(base), limit - base};
}

std::span<const std::byte> common(std::span<const std::byte> a, std::span<const std::byte> b)
{
    const std::byte* const base = std::max(a.data(), b.data());
    return {base, std::min(a.data() + a.size(), b.data() + b.size())};
}

// Of the current device. An application may map other memory at a part of its reserved range. So the
// window keeps to the VMM segment that the buffer begins in.
bool find_segment(const std::byte* address, std::span<const std::byte>& segment)
{
    CUdeviceptr base = 0;
    std::size_t length = 0;
    if (driver.memory_address_range(&base, &length, number(address)) != CUDA_SUCCESS) return false;
    segment = {reinterpret_cast<const std::byte*>(base), length};
    return true;
}

bool is_still(const std::byte* address, std::uint64_t id)
{
    unsigned long long now = 0;
    CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_BUFFER_ID;
    void* value = &now;
    return driver.pointer_get_attributes(1, &attribute, &value, number(address)) == CUDA_SUCCESS &&
           now == id;
}

struct Kept {
    std::uint64_t id;         // of the memory
    const std::byte* inside;  // that memory
    std::shared_ptr<const CpuWindow> window;
};

class CpuWindows {
public:
    std::shared_ptr<const CpuWindow> get(std::span<const std::byte> buffer,
                                         const Allocation& memory, std::string& reason);
    void clear();

private:
    std::shared_ptr<const CpuWindow> make(std::span<const std::byte> buffer,
                                          const Allocation& memory, std::string& reason);

    std::mutex mutex_;
    std::list<Kept> kept_;               // the one that was used last comes first
    std::deque<std::uint64_t> refused_;  // ids of memory that cannot be pinned
};

std::shared_ptr<const CpuWindow> CpuWindows::get(std::span<const std::byte> buffer,
                                                 const Allocation& memory, std::string& reason)
{
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(kept_, [&](const Kept& each) {
        return each.id == memory.id && each.window->has(buffer.data(), buffer.size());
    });
    if (found == kept_.end()) return make(buffer, memory, reason);
    kept_.splice(kept_.begin(), kept_, found);
    return found->window;
}

std::shared_ptr<const CpuWindow> CpuWindows::make(std::span<const std::byte> buffer,
                                                  const Allocation& memory, std::string& reason)
{
    if (std::ranges::find(refused_, memory.id) != refused_.end()) {
        reason = "this memory has been refused before";
        return nullptr;
    }
    const DeviceScope scope(memory.device);
    if (scope.error() != hipSuccess) {
        reason = hipGetErrorString(scope.error());
        return nullptr;
    }
    std::span<const std::byte> segment;
    if (buffer.size() > max_buffer || !find_segment(buffer.data(), segment) ||
        buffer.data() + buffer.size() > segment.data() + segment.size()) {
        reason = "the buffer is too large, or not in one piece of memory";
        return nullptr;
    }
    const Gdrcopy* const library = Gdrcopy::open(reason);
    if (library == nullptr) return nullptr;
    // A pin may keep memory that was freed.
    std::erase_if(kept_, [](const Kept& each) { return !is_still(each.inside, each.id); });
    if (kept_.size() == max_windows) kept_.pop_back();
    const auto pages = pages_around(buffer, segment);
    auto window = library->map(pages, common(pages, segment), reason);
    if (!window &&
        !kept_.empty()) {  // they may have taken what the GPU shows to the CPU, or all descriptors
        kept_.clear();
        window = library->map(pages, common(pages, segment), reason);
    }
    if (window) {
        kept_.push_front({memory.id, buffer.data(), window});
    } else {
        refused_.push_back(memory.id);
        if (refused_.size() > max_refused) refused_.pop_front();
    }
    return window;
}

void CpuWindows::clear()
{
    const std::lock_guard lock(mutex_);
    kept_.clear();
}

// Not destroyed at exit, when the driver may be gone.
CpuWindows& windows()
{
    static CpuWindows& all = *new CpuWindows;
    return all;
}

}  // namespace

std::shared_ptr<const CpuWindow> cpu_window_of(std::span<const std::byte> buffer,
                                               const Allocation& memory, std::string& reason)
{
    return windows().get(buffer, memory, reason);
}

void forget_cpu_windows() { windows().clear(); }

}  // namespace hier::gpu
