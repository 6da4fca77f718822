// SPDX-License-Identifier: BSD-3-Clause
// The records by which ranks tell one another who they are. Whatever they say, the topology is
// whole: each rank has one place, and each shard enters each node on its rail.
#include "hier/topology.hpp"
#include "test/fuzz/target.hpp"
#include "topology/nearness.hpp"

namespace hier::fuzz {
namespace {

void check(const Topology& topology)
{
    for (int rank = 0; rank < topology.size(); rank++) {
        const auto node = topology.ranks_on(topology.node_of(rank));
        const auto local = static_cast<std::size_t>(topology.local_of(rank));
        require(local < node.size() && node[local] == rank, "a rank is on its node");
        const auto rail = topology.ranks_on_rail(topology.rail_of(rank));
        const auto index = static_cast<std::size_t>(topology.rail_index_of(rank));
        require(index < rail.size() && rail[index] == rank, "a rank is on its rail");
        for (int n = 0; n < topology.nodes(); n++) {
            const int entry = topology.entry(rank, n);
            require(topology.node_of(entry) == n, "a shard enters a node on that node");
            require(topology.rail_of(entry) == topology.rail_of(rank), "and on its rail");
        }
    }
}

void run(Bytes bytes)
{
    Input input(bytes);
    const int ranks_per_node = input.take<std::uint8_t>() % 5;
    std::vector<PeerRecord> records;
    while (!input.empty() && records.size() < 24) records.push_back(input.take<PeerRecord>());
    if (records.empty()) return;
    const bool is_sound = std::none_of(records.begin(), records.end(),
                                       [](const auto& r) { return fault_of(r) != nullptr; });
    const Topology topology = make_topology(records, ranks_per_node);
    check(topology);
    const HostRanks host = host_ranks(records, topology, 0);
    require(host.self >= 0 && static_cast<std::size_t>(host.self) < host.positions.size(),
            "a rank is among the ranks of its host");
    const std::vector<Nic> nics{{records[0].gpu}, {{}, "x"}};
    for (const auto& taken : assign_nics(host.positions, nics, 2))
        for (const int nic : taken) require(nic == 0 || nic == 1, "a device that is there");
    if (is_sound) require(records[0].pid > 0, "a record has a process");
}

std::vector<std::string> seeds()
{
    PeerRecord record{};
    record.node_key = 1;
    record.pid = 12;
    record.cpus = 4;
    record.package = record.numa = 0;
    PeerRecord other = record;
    other.node_key = 2;
    other.gpu.pci = 0x1b00;
    other.devices = 1;
    return {std::string(1, '\0') + seed(record) + seed(record) + seed(other) + seed(other),
            std::string(1, '\1') + seed(record) + seed(other) + seed(record)};
}

}  // namespace

const Target records{"records", run, seeds};

}  // namespace hier::fuzz
