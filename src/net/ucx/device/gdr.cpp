// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/device/gdr.hpp"

#include "base/error.hpp"
#include "hier/hier.h"
#include "net/ucx/ucx_config.hpp"

namespace hier {

std::string why_not_gdr(int setting, const GdrFacts& facts)
{
    if (setting == HIER_GPU_DIRECT_OFF) return "coll_hier_gpu_direct is off";
    if (!facts.is_known) return format("UCX does not know %s memory here", facts.memory);
    if (setting == HIER_GPU_DIRECT_ON) return "";
    // UCX would take it all the same, and copy it piece by piece.
    if (!facts.is_rdma) return format("%s is no RDMA", facts.transports);
    if (facts.ucx_version < first_for_devices)
        return format("UCX %u.%u is older than %u.%u", facts.ucx_version / 100,
                      facts.ucx_version % 100, first_for_devices / 100, first_for_devices % 100);
    return "";
}

}  // namespace hier
