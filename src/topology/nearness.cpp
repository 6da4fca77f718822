// SPDX-License-Identifier: BSD-3-Clause
#include "topology/nearness.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

namespace hier {
namespace {

bool same(std::int32_t a, std::int32_t b) { return a >= 0 && a == b; }

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::vector<int> nearest_of(const Position& rank, std::span<const Nic> nics)
{
    Nearness best = Nearness::elsewhere;
    for (const Nic& nic : nics) best = std::min(best, nearness(rank, nic.position));
    std::vector<int> nearest;
    for (std::size_t i = 0; i < nics.size(); i++) {
        if (nearness(rank, nics[i].position) == best) nearest.push_back(static_cast<int>(i));
    }
    return nearest;
}

// The hierarchy is a tree. So the sets of nearest devices of two ranks are disjoint, or one holds
// the other. Ranks with the fewest candidates choose first. The other ranks then even out the
// loads. Among devices of equal load a rank takes the one that the fewest ranks are near to.
class Assignment {
public:
    Assignment(std::span<const Position> ranks, std::span<const Nic> nics)
        : nics_(nics), order_(ranks.size()), nics_of_(ranks.size()), load_(nics.size()),
          wanted_(nics.size())
    {
        for (const Position& rank : ranks) nearest_.push_back(nearest_of(rank, nics));
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
            return nearest_[a].size() < nearest_[b].size();
        });
        for (const auto& near : nearest_) {
            for (const int nic : near) wanted_[index(nic)]++;
        }
    }

    void give_first()
    {
        for (const std::size_t rank : order_) nics_of_[rank].push_back(take(nearest_[rank]));
    }

    // Gives one more device to every rank. False: some rank finds none, and no rank gets one.
    bool give_one_more()
    {
        std::vector<int> more(nics_of_.size());
        for (const std::size_t rank : order_) {
            const auto free = free_for(rank);
            if (free.empty()) return false;
            more[rank] = take(free);
        }
        for (const std::size_t rank : order_) nics_of_[rank].push_back(more[rank]);
        return true;
    }

    std::vector<std::vector<int>> nics_of() && { return std::move(nics_of_); }

private:
    int take(const std::vector<int>& from)
    {
        const auto key = [&](int nic) { return std::pair(load_[index(nic)], wanted_[index(nic)]); };
        const int taken = *std::min_element(from.begin(), from.end(),
                                            [&](int a, int b) { return key(a) < key(b); });
        load_[index(taken)]++;
        return taken;
    }

    std::vector<int> free_for(std::size_t rank) const
    {
        const std::string& link = nics_[index(nics_of_[rank].front())].link;
        std::vector<int> free;
        std::copy_if(
            nearest_[rank].begin(), nearest_[rank].end(), std::back_inserter(free),
            [&](int nic) { return load_[index(nic)] == 0 && nics_[index(nic)].link == link; });
        return free;
    }

    std::span<const Nic> nics_;
    std::vector<std::vector<int>> nearest_;
    std::vector<std::size_t> order_;
    std::vector<std::vector<int>> nics_of_;
    std::vector<int> load_;    // how many ranks have the device
    std::vector<int> wanted_;  // how many ranks have it among their nearest
};

}  // namespace

Nearness nearness(const Position& a, const Position& b)
{
    if (same(a.root_port, b.root_port)) return Nearness::same_switch;
    if (same(a.host_bridge, b.host_bridge)) return Nearness::same_host_bridge;
    if (same(a.numa, b.numa)) return Nearness::same_numa;
    if (same(a.package, b.package)) return Nearness::same_package;
    return Nearness::elsewhere;
}

const char* to_string(Nearness nearness)
{
    switch (nearness) {
    case Nearness::same_switch:
        return "same switch";
    case Nearness::same_host_bridge:
        return "same host bridge";
    case Nearness::same_numa:
        return "same NUMA node";
    case Nearness::same_package:
        return "same package";
    case Nearness::elsewhere:
        return "elsewhere";
    }
    return "?";
}

bool is_placed(const Position& position)
{
    return position.package >= 0 || position.numa >= 0 || position.host_bridge >= 0;
}

std::int64_t parse_pci(const std::string& text)
{
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    int end = 0;
    const int found =
        std::sscanf(text.c_str(), "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end);
    if (found != 4 || static_cast<std::size_t>(end) != text.size()) return -1;
    if (device >= 32 || function >= 8) return -1;
    return static_cast<std::int64_t>(domain) << 16 | bus << 8 | device << 3 | function;
}

std::string pci_text(std::int64_t pci)
{
    const auto bits = static_cast<unsigned long long>(pci);
    char text[32];
    std::snprintf(text, sizeof text, "%04llx:%02llx:%02llx.%llx", bits >> 16, bits >> 8 & 0xff,
                  bits >> 3 & 0x1f, bits & 7);
    return text;
}

std::vector<Position> rank_positions(std::span<const PeerRecord> host)
{
    const bool is_shared_by_all =
        host.size() > 1 && std::all_of(host.begin(), host.end(), [&](const PeerRecord& r) {
            return r.gpu.pci == host[0].gpu.pci;
        });
    std::vector<Position> positions;
    for (const PeerRecord& r : host) {
        Position cores;
        cores.package = r.package;
        cores.numa = r.numa;
        positions.push_back(is_placed(r.gpu) && !is_shared_by_all ? r.gpu : cores);
    }
    return positions;
}

HostRanks host_ranks(std::span<const PeerRecord> records, const Topology& topology, int rank)
{
    const auto record = [&](int r) -> const PeerRecord& {
        return records[static_cast<std::size_t>(r)];
    };
    std::vector<int> ranks;
    for (int r = 0; r < topology.size(); r++) {
        if (record(r).node_key == record(rank).node_key) ranks.push_back(r);
    }
    const auto key = [&](int r) { return std::pair(topology.node_of(r), topology.local_of(r)); };
    std::sort(ranks.begin(), ranks.end(), [&](int a, int b) { return key(a) < key(b); });
    std::vector<PeerRecord> host;
    host.reserve(ranks.size());
    for (const int r : ranks) host.push_back(record(r));
    const auto self = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    return {rank_positions(host), static_cast<int>(self)};
}

std::vector<std::vector<int>> assign_nics(std::span<const Position> ranks,
                                          std::span<const Nic> nics, int most)
{
    Assignment assignment(ranks, nics);
    assignment.give_first();
    for (int n = 1; n < most && assignment.give_one_more(); n++) {
    }
    return std::move(assignment).nics_of();
}

}  // namespace hier
