// SPDX-License-Identifier: BSD-3-Clause
// NVML: the links of the simulated devices. They lead to a switch. With CUDA_SIM_LINKS=direct they
// lead to other devices.
#include <cstdlib>
#include <cstring>

#pragma GCC diagnostic ignored "-Wmissing-declarations"  // NVML's header is not there

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device)
{
    constexpr int not_found = 6;
    if (std::strlen(address) != std::strlen("0000:0b:00.0")) return not_found;
    *device = const_cast<char*>("a device");
    return 0;
}

int nvmlDeviceGetNvLinkState(void*, unsigned link, unsigned* is_active)
{
    *is_active = link >= 2 ? 1 : 0;
    return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int* type)
{
    constexpr int gpu = 0, nvswitch = 2;
    const char* links = std::getenv("CUDA_SIM_LINKS");
    *type = links != nullptr && std::strcmp(links, "direct") == 0 ? gpu : nvswitch;
    return 0;
}

}  // extern "C"
