// SPDX-License-Identifier: BSD-3-Clause
// HSA, the layer below HIP, as far as it tells in which memory an address lies.
#include "foreign.hpp"

#include <hsa/hsa_ext_amd.h>

#include <cstring>

#include "calls.hpp"
#include "hip_sim.h"
#include "memory.hpp"

using namespace hip_sim;

namespace {

// The handle of a device's agent is this plus the device's number, because no handle may be 0.
constexpr std::uint64_t first_agent = 100;

hsa_amd_pointer_info_t describe(const void* address)
{
    hsa_amd_pointer_info_t info{};
    info.size = sizeof info;
    const auto block = find(address);
    if (!block) return info;  // HSA_EXT_POINTER_TYPE_UNKNOWN
    info.type = HSA_EXT_POINTER_TYPE_HSA;
    info.agentBaseAddress = block->base;
    info.hostBaseAddress = block->base;
    info.sizeInBytes = block->bytes;
    info.agentOwner.handle = first_agent + static_cast<std::uint64_t>(block->device);
    return info;
}

}  // namespace

namespace hip_sim {

bool passes_for_foreign(const void* address)
{
    const auto block = find(address);
    return block ? block->kind == Kind::foreign : options().reaches_all;
}

}  // namespace hip_sim

hsa_status_t hsa_amd_pointer_info(const void* address, hsa_amd_pointer_info_t* info,
                                  void* (*allocate)(std::size_t), std::uint32_t* agents,
                                  hsa_agent_t** accessible)
{
    if (allocate != nullptr || agents != nullptr || accessible != nullptr)
        give_up("hsa_amd_pointer_info with a list of agents is not simulated");
    if (address == nullptr || info == nullptr || info->size != sizeof *info)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    *info = describe(address);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t what, void* value)
{
    const std::uint64_t device = agent.handle - first_agent;
    if (device >= static_cast<std::uint64_t>(options().devices))
        return HSA_STATUS_ERROR_INVALID_AGENT;
    std::uint32_t number = 0;
    switch (static_cast<int>(what)) {
    case HSA_AGENT_INFO_DEVICE:
        number = HSA_DEVICE_TYPE_GPU;
        break;
    case HSA_AMD_AGENT_INFO_DOMAIN:
        break;
    case HSA_AMD_AGENT_INFO_BDFID:
        number = static_cast<std::uint32_t>(bus_of(static_cast<int>(device))) << 8;
        break;
    default:
        give_up("hsa_agent_get_info of %d is not simulated", static_cast<int>(what));
    }
    std::memcpy(value, &number, sizeof number);
    return HSA_STATUS_SUCCESS;
}
