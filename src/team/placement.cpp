// SPDX-License-Identifier: BSD-3-Clause
#include "team/placement.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.hpp"
#include "gpu/runtime.hpp"
#include "net/devices/network_constraints.hpp"
#include "net/devices/tcp_interfaces.hpp"
#include "topology/discovery.hpp"
#include "topology/nearness.hpp"

namespace hier {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

const std::vector<NetworkDevice>& devices()
{
    static const std::vector<NetworkDevice> found = network_devices();  // some ms: once
    return found;
}

// The ranks that share a host's devices, virtual nodes or not, and which of them is asking.
struct Sharing {
    std::vector<Position> positions;
    int self;
};

Sharing sharing(const std::vector<PeerRecord>& records, const Topology& topology, int rank)
{
    std::vector<int> ranks;
    for (int r = 0; r < topology.size(); r++) {
        if (records[index(r)].node_key == records[index(rank)].node_key) ranks.push_back(r);
    }
    const auto key = [&](int r) { return std::pair(topology.node_of(r), topology.local_of(r)); };
    std::sort(ranks.begin(), ranks.end(), [&](int a, int b) { return key(a) < key(b); });
    std::vector<PeerRecord> host;
    host.reserve(ranks.size());
    for (const int r : ranks) host.push_back(records[index(r)]);
    const auto self = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    return {rank_positions(host), static_cast<int>(self)};
}

// A rank's devices are equally near.
std::string describe_nics(const std::string& names, const Position& rank)
{
    std::string text = "nic " + names;
    const std::string first = names.substr(0, names.find(','));
    const auto found = std::find_if(devices().begin(), devices().end(),
                                    [&](const auto& d) { return d.name == first; });
    if (found == devices().end() || !is_placed(found->position) || !is_placed(rank)) return text;
    const std::string other = rank.pci >= 0 ? "the GPU" : "the cores";
    const Nearness near = nearness(rank, found->position);
    if (near != Nearness::elsewhere) return text + ": " + to_string(near) + " as " + other;
    return text + ": not near " + other;
}

}  // namespace

PeerRecord own_record()
{
    PeerRecord self = discover_self();
    const gpu::Runtime* runtime = gpu::runtime();
    if (runtime == nullptr) return self;
    self.has_device = 1;
    const int used = gpu::used_device();
    const int device = used >= 0 ? used : runtime->current_device();
    self.gpu = position_of_pci(runtime->pci_address(device));
    return self;
}

int numa_node(const PeerRecord& record)
{
    return record.gpu.numa >= 0 ? record.gpu.numa : record.numa;
}

int memory_node(const PeerRecord& self) { return numa_nodes() > 1 ? numa_node(self) : -1; }

std::vector<NetworkChoice> network_choices(const hier_config& config,
                                           const std::vector<PeerRecord>& records,
                                           const Topology& topology, int rank)
{
    const NetworkSettings wanted =
        with_variables_of_ucx({config.net_devices, config.net_transports, config.nics},
                              std::getenv("UCX_NET_DEVICES"), std::getenv("UCX_TLS"));
    const auto text = [](const char* list) { return list == nullptr ? "" : list; };
    const std::string interface =
        preferred_interface({text(config.tcp_include), text(config.tcp_exclude)},
                            default_route_interface(), ip_interfaces());
    const Sharing host = sharing(records, topology, rank);
    std::vector<NetworkChoice> choices =
        choose_network(devices(), wanted, interface, host.positions, host.self);
    const bool is_told = wanted.devices != "auto" || wanted.transports != "auto";
    if (!is_told && is_tcp(choices.front())) {
        const std::string cause = why_not_tcp(devices(), text(config.messages));
        if (!cause.empty())
            throw SetupError(cause + " than TCP on \"" + choices.front().devices +
                             "\" (coll_hier_net_devices, coll_hier_net_transports)");
    }
    const bool is_direct = config.gpu_direct == HIER_GPU_DIRECT_ON ||
                           (config.gpu_direct == HIER_GPU_DIRECT_AUTO && is_rdma(choices.front()));
    if (!is_direct || gpu::runtime() == nullptr) return choices;
    const std::string memory = memory_transports();
    for (NetworkChoice& choice : choices) choice.memory = memory;
    return choices;
}

std::string describe_place(const std::vector<PeerRecord>& records, const Topology& topology,
                           int rank, const std::string& devices)
{
    const PeerRecord& self = records[index(rank)];
    const Sharing host = sharing(records, topology, rank);
    const Position& position = host.positions[index(host.self)];
    std::string text;
    const auto append = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    if (self.gpu.pci >= 0) append("GPU " + pci_text(self.gpu.pci));
    if (numa_node(self) >= 0) append("NUMA node " + std::to_string(numa_node(self)));
    if (text.empty()) append("place not known");
    if (!devices.empty()) append(describe_nics(devices, position));
    return text;
}

}  // namespace hier
