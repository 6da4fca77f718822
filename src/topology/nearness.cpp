#include "topology/nearness.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace hier {
namespace {

bool same(std::int32_t a, std::int32_t b) { return a >= 0 && a == b; }

std::vector<std::size_t> nearest_of(const Position& rank, std::span<const Position> nics)
{
    Nearness best = Nearness::elsewhere;
    for (const Position& nic : nics) best = std::min(best, nearness(rank, nic));
    std::vector<std::size_t> nearest;
    for (std::size_t i = 0; i < nics.size(); i++) {
        if (nearness(rank, nics[i]) == best) nearest.push_back(i);
    }
    return nearest;
}

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

// Whatever is nearest to two ranks, one set holds the other or they have nothing in common: the
// hierarchy is a tree. So those with the fewest to choose from go first, and the others level out.
std::vector<int> assign_nics(std::span<const Position> ranks, std::span<const Position> nics)
{
    std::vector<std::vector<std::size_t>> nearest;
    for (const Position& rank : ranks) nearest.push_back(nearest_of(rank, nics));
    std::vector<std::size_t> turn(ranks.size());
    std::iota(turn.begin(), turn.end(), std::size_t{0});
    std::stable_sort(turn.begin(), turn.end(), [&](std::size_t a, std::size_t b) {
        return nearest[a].size() < nearest[b].size();
    });

    std::vector<int> load(nics.size());
    std::vector<int> nic_of(ranks.size());
    for (const std::size_t rank : turn) {
        const auto& mine = nearest[rank];
        const std::size_t taken =
            *std::min_element(mine.begin(), mine.end(),
                              [&](std::size_t a, std::size_t b) { return load[a] < load[b]; });
        load[taken]++;
        nic_of[rank] = static_cast<int>(taken);
    }
    return nic_of;
}

}  // namespace hier
