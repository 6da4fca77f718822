// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>
#include <hsa/hsa_ext_amd.h>
#include <strings.h>

#include <cstdio>
#include <cstring>
#include <type_traits>

#include "gpu/rocm/foreign.hpp"

namespace hier::gpu {
namespace {

struct Hsa {
    decltype(&hsa_amd_pointer_info) pointer_info = nullptr;
    decltype(&hsa_agent_get_info) agent_info = nullptr;
};

// Finds HSA's functions through HIP's library, because dlsym also searches the libraries that HIP
// needs.
const Hsa& hsa()
{
    static const Hsa found = [] {
        Hsa functions;
        void* const hip = dlopen(HIER_ROCM_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
        if (hip == nullptr) return functions;
        const auto find = [hip](const char* name, auto& function) {
            function =
                reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(hip, name));
        };
        find("hsa_amd_pointer_info", functions.pointer_info);
        find("hsa_agent_get_info", functions.agent_info);
        dlclose(hip);  // this module is linked with HIP, so the library stays
        return functions;
    }();
    return found;
}

bool ask(hsa_agent_t agent, int what, void* value)
{
    return hsa().agent_info(agent, static_cast<hsa_agent_info_t>(what), value) ==
           HSA_STATUS_SUCCESS;
}

// Compares places on the PCI bus. Some versions of HIP give all parts of one GPU the same place, so
// an equal place but for the function counts too.
int device_of(hsa_agent_t agent)
{
    std::uint32_t domain = 0, place = 0;
    int devices = 0;
    if (!ask(agent, HSA_AMD_AGENT_INFO_BDFID, &place) || hipGetDeviceCount(&devices) != hipSuccess)
        return -1;
    (void)ask(agent, HSA_AMD_AGENT_INFO_DOMAIN, &domain);
    char wanted[32];
    std::snprintf(wanted, sizeof wanted, "%04x:%02x:%02x.%x", domain, place >> 8 & 0xff,
                  place >> 3 & 0x1f, place & 7);
    const std::size_t without_function = std::strlen(wanted) - 1;
    int found = -1;
    for (int d = devices - 1; d >= 0; d--) {
        char address[32] = "";
        if (hipDeviceGetPCIBusId(address, sizeof address, d) != hipSuccess) continue;
        if (strcasecmp(address, wanted) == 0) return d;
        if (strncasecmp(address, wanted, without_function) == 0) found = d;
    }
    return found;
}

}  // namespace

hipError_t inspect_foreign(const void* address, Allocation& allocation)
{
    allocation = {};
    if (hsa().pointer_info == nullptr || hsa().agent_info == nullptr) return hipErrorNotSupported;
    hsa_amd_pointer_info_t info{};
    info.size = sizeof info;
    if (hsa().pointer_info(address, &info, nullptr, nullptr, nullptr) != HSA_STATUS_SUCCESS)
        return hipErrorInvalidValue;
    // Locked memory is host memory.
    if (info.type == HSA_EXT_POINTER_TYPE_UNKNOWN || info.type == HSA_EXT_POINTER_TYPE_LOCKED)
        return hipSuccess;
    hsa_device_type_t owner{};
    if (!ask(info.agentOwner, HSA_AGENT_INFO_DEVICE, &owner)) return hipErrorInvalidValue;
    if (owner != HSA_DEVICE_TYPE_GPU) return hipSuccess;
    allocation.kind = MemoryKind::device;
    allocation.device = device_of(info.agentOwner);
    allocation.base = static_cast<std::byte*>(info.agentBaseAddress);
    allocation.length = info.sizeInBytes;
    allocation.is_exportable = false;
    return allocation.device >= 0 ? hipSuccess : hipErrorInvalidDevice;
}

}  // namespace hier::gpu
