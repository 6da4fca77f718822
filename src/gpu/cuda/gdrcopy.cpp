// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/cuda/gdrcopy.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "gpu/common/cpu_stores.hpp"

namespace hier::gpu {
namespace {

// Of all calls but copies, because the library takes one at a time.
std::mutex mutex;

template <class F> bool find(void* library, const char* name, F& function)
{
    function = reinterpret_cast<F>(dlsym(library, name));
    return function != nullptr;
}

}  // namespace

class Gdrcopy::Window final : public CpuWindow {
public:
    Window(const Gdrcopy& library, Handle handle, std::span<const std::byte> pages,
           std::span<const std::byte> memory, void* mapped)
        : CpuWindow(memory), library_(library), handle_(handle), pages_(pages),
          mapped_(static_cast<std::byte*>(mapped))
    {
    }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
    // The memory may be gone. Then the driver has unpinned it, and both calls are harmless.
    ~Window() override
    {
        const std::lock_guard lock(mutex);
        (void)library_.unmap_(library_.instance_, handle_, mapped_, pages_.size());
        (void)library_.unpin_(library_.instance_, handle_);
    }
    // The copies know only one error: that the memory is not mapped.
    void load(void* to, const std::byte* from, std::size_t bytes) const override
    {
        // GDRCopy loads in an order of its own.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        (void)library_.load_(handle_, to, here(from), bytes);
    }
    void store(std::byte* to, const void* from, std::size_t bytes) const override
    {
        (void)library_.store_(handle_, here(to), from, bytes);
    }
    void flush(const std::byte* at) const override
    {
        order_stores();
        wait_for_stores(here(at));
    }

private:
    std::byte* here(const std::byte* address) const { return mapped_ + (address - pages_.data()); }

    const Gdrcopy& library_;
    const Handle handle_;
    const std::span<const std::byte> pages_;
    std::byte* const mapped_;
};

bool Gdrcopy::open_library()
{
    void* const library = dlopen("libgdrapi.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* const cause = dlerror();
        fault_ = cause != nullptr ? cause : "no libgdrapi.so.2";
        return false;
    }
    const bool has_all =
        find(library, "gdr_open", open_) && find(library, "gdr_pin_buffer", pin_) &&
        find(library, "gdr_unpin_buffer", unpin_) && find(library, "gdr_map", map_) &&
        find(library, "gdr_unmap", unmap_) && find(library, "gdr_copy_to_mapping", store_) &&
        find(library, "gdr_copy_from_mapping", load_);
    instance_ = has_all ? open_() : nullptr;
    if (!has_all)
        fault_ = "libgdrapi.so.2 lacks a function";
    else if (instance_ == nullptr)
        fault_ = "GDRCopy finds neither gdrdrv nor a CUDA driver that can do without";
    return instance_ != nullptr;
}

// Lives as long as the process, because others may still have windows at exit.
const Gdrcopy* Gdrcopy::open(std::string& reason)
{
    const std::lock_guard lock(mutex);
    static Gdrcopy* library = nullptr;
    if (library == nullptr) {
        library = new Gdrcopy;
        (void)library->open_library();
    }
    if (library->instance_ != nullptr) return library;
    reason = library->fault_;
    return nullptr;
}

// Pinned pages of the GPU begin where their mapping begins.
std::shared_ptr<const CpuWindow> Gdrcopy::map(std::span<const std::byte> pages,
                                              std::span<const std::byte> memory,
                                              std::string& reason) const
{
    const std::lock_guard lock(mutex);
    Handle handle{};
    void* mapped = nullptr;
    int error =
        pin_(instance_, reinterpret_cast<unsigned long>(pages.data()), pages.size(), 0, 0, &handle);
    const bool is_pinned = error == 0;
    if (is_pinned) error = map_(instance_, handle, &mapped, pages.size());
    if (error == 0) return std::make_shared<Window>(*this, handle, pages, memory, mapped);
    if (is_pinned) (void)unpin_(instance_, handle);
    reason = is_pinned ? "GDRCopy cannot map it: " : "GDRCopy cannot pin it: ";
    reason += std::strerror(error);
    return nullptr;
}

}  // namespace hier::gpu
