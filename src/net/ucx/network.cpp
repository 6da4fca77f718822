// SPDX-License-Identifier: BSD-3-Clause
#include "net/network.hpp"

#include "net/ucx/retired_lanes.hpp"
#include "net/ucx/ucx_config.hpp"
#include "net/ucx/ucx_worker.hpp"

namespace hier {

std::string network_library() { return std::string("UCX ") + ucp_get_version_string(); }

void progress_networks() { UcxWorker::progress_all(); }

void sweep_networks() { sweep_retired_lanes(); }

void quiesce_networks() { UcxWorker::quiesce(); }

bool networks_are_quiet() { return UcxWorker::is_quiet(); }

void finalize_networks()
{
    drop_retired_lanes();
    UcxWorker::finalize();
}

}  // namespace hier
