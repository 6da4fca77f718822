// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "bar.hpp"
#include "calls.hpp"

namespace hip_sim {

namespace {

thread_local int device_of_thread = 0;

// A real runtime needs more than a tick of the kernel's clock to start, too, which hier relies on.
[[gnu::constructor]] void start() { std::this_thread::sleep_for(std::chrono::milliseconds(12)); }

}  // namespace

int current_device() { return device_of_thread; }

int bus_of(int device) { return 0x0b + 0x10 * device; }

}  // namespace hip_sim

using namespace hip_sim;

hipError_t hipGetDeviceCount(int* count)
{
    const hipError_t error = counted(broken, [&] {
        if (count == nullptr) return hipErrorInvalidValue;
        *count = options().devices;
        return hipSuccess;
    });
    if (error == hipErrorNoDevice && count != nullptr) *count = 0;
    return error;
}

hipError_t hipGetDevice(int* device)
{
    return counted(broken, [&] {
        if (device == nullptr) return hipErrorInvalidValue;
        *device = device_of_thread;
        return hipSuccess;
    });
}

hipError_t hipSetDevice(int device)
{
    return counted(broken, [&] {
        if (device < 0 || device >= options().devices) return hipErrorInvalidDevice;
        device_of_thread = device;
        return hipSuccess;
    });
}

hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device)
{
    return counted(broken, [&] {
        if (device < 0 || device >= options().devices) return hipErrorInvalidDevice;
        switch (static_cast<int>(attribute)) {
        case hipDeviceAttributeMultiprocessorCount:
            *value = 120;
            return hipSuccess;
        case hipDeviceAttributeIsLargeBar:
            *value = options().has_large_bar ? 1 : 0;
            return hipSuccess;
        case hipDeviceAttributeHdpMemFlushCntl: {  // the value is a pointer
            std::uint32_t* const at =
                options().has_flush_register ? flush_register(device) : nullptr;
            std::memcpy(value, &at, sizeof at);
            return hipSuccess;
        }
        default:
            give_up("the attribute %d of devices is not simulated", static_cast<int>(attribute));
        }
    });
}

hipError_t hipDeviceGetPCIBusId(char* address, int length, int device)
{
    return counted(broken, [&] {
        if (device < 0 || device >= options().devices) return hipErrorInvalidDevice;
        if (address == nullptr || length <= 0) return hipErrorInvalidValue;
        const int needed = std::snprintf(address, static_cast<std::size_t>(length),
                                         "0000:%02x:00.0", bus_of(device));
        return needed < length ? hipSuccess : hipErrorInvalidValue;
    });
}

hipError_t hipDriverGetVersion(int* version)
{
    return counted(broken, [&] {
        if (version == nullptr) return hipErrorInvalidValue;
        *version = options().version;
        return hipSuccess;
    });
}

hipError_t hipRuntimeGetVersion(int* version) { return hipDriverGetVersion(version); }
