// SPDX-License-Identifier: BSD-3-Clause
// The CPU reaches device memory behind a large BAR at the address that the device has for it.
#include <cstring>

#include "gpu/common/cpu_stores.hpp"
#include "gpu/common/platform.hpp"
#include "memory/readable.hpp"

namespace hier::gpu {
namespace {

class LargeBar final : public CpuWindow {
public:
    // `flush_register`: null if there is none.
    LargeBar(std::span<const std::byte> memory, volatile std::uint32_t* flush_register)
        : CpuWindow(memory), flush_register_(flush_register)
    {
    }
    void load(void* to, const std::byte* from, std::size_t bytes) const override
    {
        std::memcpy(to, from, bytes);
    }
    void store(std::byte* to, const void* from, std::size_t bytes) const override
    {
        std::memcpy(to, from, bytes);
    }
    // The device may keep stores, too, until the CPU writes the register.
    void flush(const std::byte* at) const override
    {
        order_stores();
        if (flush_register_ != nullptr) *flush_register_ = 1;
        wait_for_stores(at);
    }

private:
    volatile std::uint32_t* const flush_register_;
};

// HIP writes the address of the register where the caller expects an int.
bool has_large_bar(int device, volatile std::uint32_t*& flush_register)
{
    int has_bar = 0;
    void* address = nullptr;
    if (hipDeviceGetAttribute(&has_bar, hipDeviceAttributeIsLargeBar, device) != hipSuccess ||
        hipDeviceGetAttribute(reinterpret_cast<int*>(&address), hipDeviceAttributeHdpMemFlushCntl,
                              device) != hipSuccess) {
        (void)hipGetLastError();
        return false;
    }
    flush_register = static_cast<volatile std::uint32_t*>(address);
    return has_bar != 0;
}

}  // namespace

// The CPU does not reach memory that the application has mapped itself, which only the system knows.
std::shared_ptr<const CpuWindow> cpu_window_of(std::span<const std::byte> buffer,
                                               const Allocation& memory, std::string& reason)
{
    volatile std::uint32_t* flush_register = nullptr;
    if (!has_large_bar(memory.device, flush_register)) {
        reason = "the device has no large BAR";
        return nullptr;
    }
    if (!is_readable(buffer.data())) {
        reason = "this memory is not mapped for the CPU";
        return nullptr;
    }
    return std::make_shared<LargeBar>(std::span<const std::byte>(memory.base, memory.length),
                                      flush_register);
}

void forget_cpu_windows() {}

}  // namespace hier::gpu
