// SPDX-License-Identifier: BSD-3-Clause
#include "hier/topology.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace hier {

Topology::Topology(std::span<const int> node_of_rank, std::span<const int> local_order)
    : node_of_(node_of_rank.size()), local_of_(node_of_rank.size()),
      rail_index_(node_of_rank.size())
{
    std::map<int, int> number;  // the number of a node: its first appearance in rank order
    for (std::size_t r = 0; r < node_of_rank.size(); r++) {
        const auto [it, is_new] =
            number.try_emplace(node_of_rank[r], static_cast<int>(members_.size()));
        if (is_new) members_.emplace_back();
        node_of_[r] = it->second;
        members_[index(it->second)].push_back(static_cast<int>(r));
    }

    std::size_t smallest = node_of_rank.size();
    for (auto& ranks : members_) {
        if (!local_order.empty()) {
            std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
                return local_order[index(a)] < local_order[index(b)];
            });
        }
        for (std::size_t l = 0; l < ranks.size(); l++)
            local_of_[index(ranks[l])] = static_cast<int>(l);
        smallest = std::min(smallest, ranks.size());
    }

    rail_members_.resize(smallest);
    for (const auto& ranks : members_) {
        for (const int r : ranks) {
            auto& rail = rail_members_[index(rail_of(r))];
            rail_index_[index(r)] = static_cast<int>(rail.size());
            rail.push_back(r);
        }
    }
}

int Topology::entry(int source, int node) const
{
    if (node_of(source) == node) return source;
    const auto& ranks = members_[index(node)];
    const int rail = rail_of(source);
    // The ranks of `node` on this rail have the local indices rail, rail + rails(), and so on. The
    // rail's other ranks are dealt to them round robin. The node's own ranks, which need no entry,
    // are exactly one round. So leaving them out shifts nothing, and loads differ by one at most.
    const int on_rail = (static_cast<int>(ranks.size()) - rail + rails() - 1) / rails();
    const int position = rail_index_of(source) % on_rail;
    return ranks[index(rail + position * rails())];
}

int Topology::leader(int from, int to) const
{
    const int distance = (to - from + nodes()) % nodes();
    return members_[index(from)][index((distance - 1) % rails())];
}

const char* fault_of(const PeerRecord& record)
{
    const Position& gpu = record.gpu;
    if (record.pid <= 0) return "a process id that is none";
    if (record.devices < 0) return "a negative number of GPUs";
    for (const std::int8_t flag : {record.gpu_turns, record.has_kernels}) {
        if (flag != 0 && flag != 1) return "neither yes nor no";
    }
    if (gpu.pci < -1 || record.cpus < -1) return "a number below -1";
    for (const std::int32_t number : {gpu.package, gpu.numa, gpu.host_bridge, gpu.root_port,
                                      record.package, record.numa, record.first_pu}) {
        if (number < -1) return "a number below -1";
    }
    return nullptr;
}

Topology make_topology(std::span<const PeerRecord> records, int ranks_per_node)
{
    std::map<std::uint64_t, bool> has_gpus;  // do all ranks of a host have one?
    for (const PeerRecord& p : records)
        has_gpus.try_emplace(p.node_key, true).first->second &= p.gpu.pci >= 0;

    std::vector<int> by_locality(records.size());
    std::iota(by_locality.begin(), by_locality.end(), 0);
    const auto key = [&](int r) {
        const PeerRecord& p = records[static_cast<std::size_t>(r)];
        const Position gpu = has_gpus[p.node_key] ? p.gpu : Position{};
        return std::tuple(gpu.package, gpu.numa, gpu.pci, p.package, p.numa, p.first_pu, r);
    };
    std::sort(by_locality.begin(), by_locality.end(),
              [&](int a, int b) { return key(a) < key(b); });

    std::map<std::uint64_t, int> seen;  // how many ranks of a host have been met, in local order
    std::map<std::pair<std::uint64_t, int>, int> number;  // the number of a virtual node
    std::vector<int> node_of(records.size());
    std::vector<int> order(records.size());
    for (const int r : by_locality) {
        const auto i = static_cast<std::size_t>(r);
        const int position = seen[records[i].node_key]++;
        const int part = ranks_per_node > 0 ? position / ranks_per_node : 0;
        const auto it =
            number.try_emplace({records[i].node_key, part}, static_cast<int>(number.size())).first;
        node_of[i] = it->second;
        order[i] = position;
    }
    return Topology(node_of, order);
}

}  // namespace hier
