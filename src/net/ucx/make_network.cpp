// SPDX-License-Identifier: BSD-3-Clause
// The rail level of a team on UCX: chooses this rank's network devices and opens a lane on each.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "hier/hier.h"
#include "net/devices/network_constraints.hpp"
#include "net/devices/tcp_interfaces.hpp"
#include "net/network.hpp"
#include "net/ucx/open_lanes.hpp"
#include "net/ucx/rail.hpp"
#include "net/ucx/ucx_devices.hpp"
#include "team/group.hpp"
#include "topology/nearness.hpp"

namespace hier {
namespace {

const std::vector<NetworkDevice>& devices()
{
    static const std::vector<NetworkDevice> found = network_devices();  // some ms: once
    return found;
}

// The network devices of the rank, one choice for each. Throws SetupError.
std::vector<NetworkChoice> network_choices(const NetworkSetup& setup)
{
    const hier_config& config = setup.config;
    const NetworkSettings wanted =
        with_variables_of_ucx({config.net_devices, config.net_transports, config.nics},
                              std::getenv("UCX_NET_DEVICES"), std::getenv("UCX_TLS"));
    const auto text = [](const char* list) { return list == nullptr ? "" : list; };
    const std::string interface =
        preferred_interface({text(config.tcp_include), text(config.tcp_exclude)},
                            default_route_interface(), ip_interfaces());
    const HostRanks host = host_ranks(setup.records, setup.topology, setup.rank);
    std::vector<NetworkChoice> choices =
        choose_network(devices(), wanted, interface, host.positions, host.self);
    const bool is_told = wanted.devices != "auto" || wanted.transports != "auto";
    if (!is_told && is_tcp(choices.front())) {
        const std::string cause = why_not_tcp(devices(), text(config.messages));
        if (!cause.empty())
            throw SetupError(cause + " than TCP on \"" + choices.front().devices +
                             "\" (coll_hier_net_devices, coll_hier_net_transports)");
    }
    const bool is_gdr = config.gpu_direct == HIER_GPU_DIRECT_ON ||
                        (config.gpu_direct == HIER_GPU_DIRECT_AUTO && is_rdma(choices.front()));
    if (!is_gdr || setup.gpu == nullptr) return choices;
    const std::string memory = memory_transports();
    for (NetworkChoice& choice : choices) choice.memory = memory;
    return choices;
}

// A rank's devices are equally near: the first one stands for all.
Position position_of(const std::string& names)
{
    const std::string first = names.substr(0, names.find(','));
    const auto found = std::find_if(devices().begin(), devices().end(),
                                    [&](const auto& d) { return d.name == first; });
    return found == devices().end() ? Position{} : found->position;
}

}  // namespace

std::unique_ptr<NetworkTransport> make_network(const NetworkSetup& setup)
{
    std::vector<NetworkChoice> choices;
    setup.group.agree("choosing network devices", [&] { choices = network_choices(setup); });
    std::vector<LanePointer> lanes = open_lanes(setup, choices);
    NetworkTraits traits = traits_of(lanes);
    traits.position = position_of(traits.devices);
    return std::make_unique<Rail>(setup.group.rank(), setup.group.size(), std::move(lanes),
                                  std::move(traits));
}

}  // namespace hier
