// SPDX-License-Identifier: BSD-3-Clause
#include "net/network.hpp"

#include "net/ucx/lane/retired_lanes.hpp"
#include "net/ucx/ucx_config.hpp"
#include "net/ucx/ucx_workers.hpp"

namespace hier {

std::string network_library() { return std::string("UCX ") + ucp_get_version_string(); }

void progress_networks() { UcxWorkers::progress(); }

void sweep_networks() { sweep_retired_lanes(); }

void quiesce_networks() { UcxWorkers::quiesce(); }

bool networks_are_quiet() { return UcxWorkers::are_quiet(); }

void finalize_networks()
{
    drop_retired_lanes();
    UcxWorkers::finalize();
}

}  // namespace hier
