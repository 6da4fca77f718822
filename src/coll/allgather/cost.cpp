// SPDX-License-Identifier: BSD-3-Clause
#include "coll/allgather/cost.hpp"

#include <algorithm>
#include <cmath>

namespace hier {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// A rank's queue of copies: the numbers of copies, and the bytes of all pushes and of all own
// copies.
struct Copies {
    double pushes = 0, pushed = 0, own = 0, owned = 0;
    double staged = 0;            // to and from the bounce buffer: they only have to be issued
    double fans = 0, fanned = 0;  // blocks that kernels push to all of a node, and their bytes
};

bool is_fanned(const Rates& r, double peers, double bytes)
{
    return peers >= 2 && bytes <= static_cast<double>(r.fan_out);
}

// Blocks of so many bytes that go to all peers on the node.
void add_pushes(Copies& copies, const Rates& r, double blocks, double peers, double bytes)
{
    if (is_fanned(r, peers, bytes)) {
        copies.fans += blocks;
        copies.fanned += blocks * peers * bytes;
    } else {
        copies.pushes += blocks * peers;
        copies.pushed += blocks * peers * bytes;
    }
}

// The time of a queue that never rests: that of its streams, of its issue, or of the busiest port.
double queue_time(const Rates& r, const Copies& n, int members)
{
    const double streams =
        n.pushes * r.link_latency + n.pushed / r.link + n.own * r.link_latency + n.owned / r.own;
    const double kernels = n.fans > 0 ? std::ceil(n.fans / r.kernel_blocks) : 0;
    const double pushing =
        kernels * r.link_latency + std::max(kernels - 1, 0.0) * r.kernel_gap + n.fanned / r.link;
    const double issue = (n.pushes + kernels + n.own + (r.stage > 0 ? n.staged : 0)) * r.copy_issue;
    const double memory = r.node > 0 ? (n.pushed + n.owned) * members / r.node : 0;
    return std::max({streams / r.streams, pushing, issue, (n.pushed + n.fanned) / r.link, memory});
}

// From the moment a copy can be issued until the device begins.
double start_of(const Rates& r) { return r.copy_issue + r.launch; }

// Chunks of c bytes come one behind the other. How long does the last one wait for a kernel? While a
// kernel takes longer than a chunk takes to come, the next one has more chunks, and takes longer. That
// ends where a kernel takes as long as its chunks took to come. If a chunk's bytes take as long as the
// chunk, each kernel takes one start more than the one before, and n of them n^2/2 starts.
double wait_for_kernel(const Rates& r, double chunks, double peers, double c, double interval)
{
    const double start = r.kernel_gap + r.link_latency, bytes = peers * c / r.link;
    if (chunks < 2 || !is_fanned(r, peers, c) || start + bytes <= interval) return 0;
    const double grown = std::sqrt(2 * start * chunks * interval);
    return bytes < interval ? std::min(grown, start / (1 - bytes / interval))
                            : grown + chunks * (bytes - interval);
}

// Copies of c bytes to the bounce buffer, or from it. Each direction has a stream of its own.
double staging_time(const Rates& r, double copies, double c)
{
    return r.stage > 0 ? copies * std::max(r.copy_issue, r.link_latency + c / r.stage) : 0;
}

}  // namespace

AllgatherCost::AllgatherCost(const Topology& topology, const Rates& rates)
    : ranks_(topology.size()), nodes_(topology.nodes()), rates_(rates)
{
    for (int n = 0; n < nodes_; n++) {
        const auto ranks = topology.ranks_on(n);
        const auto [first, last] = std::minmax_element(ranks.begin(), ranks.end());
        const int members = static_cast<int>(ranks.size());
        max_members_ = std::max(max_members_, members);
        are_neighbours_ = are_neighbours_ && *last - *first + 1 == members;
    }
    for (const Route route : all_routes)
        load_[static_cast<std::size_t>(route)] = route_load(topology, rates.nics, route);
}

// The rates for shards of this size.
Rates AllgatherCost::rates_for(std::size_t bytes, bool is_publish) const
{
    Rates r = rates_;
    if (is_publish) {
        r.link_latency = r.publish_latency;
        r.launch = 0;  // is in it
        if (nodes_ == 1 && !r.shares_cores && r.exchange_latency > 0) {
            r.link_latency = r.exchange_latency;
            r.overhead = r.exchange_overhead;
        }
    } else if (bytes <= r.small_bytes) {
        r.link_latency = r.small_latency;
    }
    return r;
}

// Why no larger ones are: NodeNeeds::max_published has the times.
bool AllgatherCost::is_publish(std::size_t bytes, Route route, std::size_t chunk) const
{
    return bytes <= rates_.small_bytes && fits_publish(bytes, route, chunk);
}

// Does all that any rank pushes to its node fit in?
bool AllgatherCost::fits_halves(std::size_t bytes, Route route, std::size_t chunk,
                                std::size_t space) const
{
    const auto& nodes = load(route).nodes;
    return max_members_ > 1 && std::all_of(nodes.begin(), nodes.end(), [&](const auto& node) {
               const std::size_t shards = 1 + index(node.shards);
               if (bytes > space / shards) return false;
               const std::size_t pushed = bytes * shards;
               const std::size_t blocks = 1 + index(node.entering) + pushed / chunk;
               return blocks * rates_.publish_block <= space - pushed;
           });
}

double AllgatherCost::fallback(std::size_t bytes) const
{
    // The time of a message through Open MPI's shared memory, which grows with the number of rounds,
    // and its rate. Measured with 2 to 32 ranks on as many cores, 16 B to 16 KiB.
    constexpr double node_rate = 2.6e9;
    const double rounds = std::ceil(std::log2(ranks_));
    const double message = 0.26e-6 + 0.17e-6 * rounds;
    const double size = static_cast<double>(bytes);
    const double copies = ranks_ * size / node_rate;
    const double detour =
        rates_.detour + (rates_.detour_rate > 0 ? (ranks_ + 1) * size / rates_.detour_rate : 0);
    if (nodes_ == 1) return detour + rounds * message + copies;
    // In the last rounds every rank sends all that it has to another node.
    const int nics = rates_.nics > 0 ? std::min(rates_.nics, max_members_) : max_members_;
    const double sharing = std::ceil(static_cast<double>(max_members_) / nics);
    const double through_nic = sharing * (ranks_ - max_members_) * size;
    return detour + rounds * (rates_.nic_latency + rates_.nic_issue) + through_nic / rates_.nic +
           copies;
}

Choice AllgatherCost::bundled(std::size_t bytes, bool eager) const
{
    const std::size_t whole = bytes * index(max_members_);
    const bool publish = is_publish(bytes, Route::bundles, whole);
    const Rates r = rates_for(bytes, publish);
    const RouteLoad& busiest = load(Route::bundles);
    const double size = static_cast<double>(bytes);
    Rates spreading = r;
    if (r.link_alone > 0) spreading.link = r.link_alone;
    const double stage =  // the first one out, the last one in
        r.stage > 0 ? start_of(r) + r.link_latency + static_cast<double>(whole) / r.stage : 0;
    Choice choice{Route::bundles, whole, std::clamp(busiest.out, 1, max_chosen_depth)};
    choice.eager = eager && nodes_ > 1;
    choice.publish = publish;
    const double issue =
        std::max((busiest.out + busiest.in) * r.nic_issue, busiest.nic_messages * r.nic_gap);
    const double rail =
        eager ? eager_time(bytes, Route::bundles, 1) : std::max(busiest.nic * size / r.nic, issue);
    double handshake = 0;  // the part that gathering does not hide
    for (const RouteLoad::Node& node : busiest.nodes) {
        const double peers = node.members - 1;
        Copies own{.own = 1, .owned = size};
        add_pushes(own, r, 1, peers, size);
        const double behind_first = std::max(node.entering - 1.0, 0.0);
        const double message = node.shards * size / std::max(node.entering, 1);
        Copies entering{.staged = behind_first};
        add_pushes(entering, r, node.entering, peers, message);
        const double gather = start_of(r) + queue_time(r, own, node.members);
        const double fan = r.launch + std::max(queue_time(spreading, entering, node.members),
                                               staging_time(r, behind_first, message));
        const bool is_beneath = r.engines && node.entering > 0;
        const double hidden =
            is_beneath ? std::min(rail, fan) * (node.entering - 1) / node.entering : 0;
        choice.links = std::max(choice.links, gather + fan - hidden);
        handshake = std::max(handshake, r.nic_latency - gather);
    }
    choice.network = (eager ? 0 : handshake) + rail + r.nic_latency + 2 * stage;
    choice.seconds = r.overhead + choice.links + choice.network;
    return choice;
}

// The part of a rank's chunks that its busiest lane carries. The chunks for a peer are striped over
// the lanes, and each peer begins on the next lane. A ring has only one peer.
double AllgatherCost::lane_share(Route route, std::size_t chunks) const
{
    const std::size_t lanes = index(rates_.lanes);
    const std::size_t peers = route == Route::direct && nodes_ > 1 ? index(nodes_ - 1) : 1;
    const std::size_t odd = chunks % lanes;
    const std::size_t on_one =
        peers * (chunks / lanes) + peers / lanes * odd + std::min(peers % lanes, odd);
    return static_cast<double>(on_one) / static_cast<double>(peers * chunks);
}

// The time of the busiest NIC.
double AllgatherCost::network_time(std::size_t bytes, Route route, std::size_t chunks) const
{
    return load(route).nic * lane_share(route, chunks) * static_cast<double>(bytes) / rates_.nic;
}

// The time of messages between nodes, from the start of the first to the start of the last. All
// take one lane.
double AllgatherCost::eager_time(std::size_t bytes, Route route, std::size_t chunks) const
{
    const Rates& r = rates_;
    const RouteLoad& busiest = load(route);
    const auto k = static_cast<double>(chunks);
    const double taken = k * busiest.nic_messages * r.nic_gap;
    const double hops = nodes_ - 1;
    const double issue =
        route == Route::ring
            ? hops * (r.nic_latency + std::max(2 * k * r.message, taken / hops)) - r.nic_latency
            : std::max((busiest.out + busiest.in) * k * r.message, taken);
    return busiest.nic * static_cast<double>(bytes) / r.nic + issue;
}

double AllgatherCost::rail_time(std::size_t bytes, Route route, std::size_t chunk, int depth) const
{
    const Rates& r = rates_;
    const RouteLoad& busiest = load(route);
    const std::size_t chunks = (bytes + chunk - 1) / chunk;
    const auto k = static_cast<double>(chunks);
    const double wire = static_cast<double>(std::min(chunk, bytes)) / r.nic;
    const double rail = std::max(
        {network_time(bytes, route, chunks), busiest.out * k * (wire + 2 * r.nic_latency) / depth,
         (busiest.out + busiest.in) * k * r.nic_issue,
         busiest.nic_messages * k * lane_share(route, chunks) * r.nic_gap});
    return route == Route::ring ? std::max(rail, (nodes_ - 1) * (wire + r.nic_latency)) : rail;
}

Choice AllgatherCost::predict(std::size_t bytes, Route route, std::size_t chunk, int depth,
                              bool eager) const
{
    if (route == Route::bundles) return bundled(bytes, eager);
    const bool publish = is_publish(bytes, route, chunk);
    const Rates r = rates_for(bytes, publish);
    const RouteLoad& busiest = load(route);
    const std::size_t chunks = (bytes + chunk - 1) / chunk;
    const auto k = static_cast<double>(chunks);
    const double size = static_cast<double>(bytes);
    const double c = std::min(static_cast<double>(chunk), size);
    const double out = r.stage > 0 ? start_of(r) + r.link_latency + c / r.stage : 0;
    const double wire = c / r.nic;
    const double latency = r.nic_latency;
    const double staging = staging_time(r, std::max(1, busiest.in) * k - 1, c);
    const double rail =
        std::max(staging, eager && nodes_ > 1 ? eager_time(bytes, route, chunks)
                                              : rail_time(bytes, route, chunk, depth));
    const double last_arrival = std::max(out, eager ? 0 : latency) + rail + latency;

    // On several lanes several chunks land at the same time. That also holds for the last chunks.
    const bool has_lanes = nodes_ > 1 && !eager;
    const double last_ones = route == Route::direct ? k * (nodes_ - 1) : k;
    const double at_once = has_lanes ? std::min<double>(r.lanes, last_ones) : 1;
    // Ranks that share a NIC send their first chunks through it one after the other.
    const double sharing = std::max(1.0, busiest.nic / std::max<double>(busiest.in, 1));
    const double first_arrival = (eager ? 1 : 2) * latency + sharing * wire;

    Choice choice{route, chunk, depth, is_own_whole(), eager && nodes_ > 1, publish};
    if (nodes_ > 1) choice.network = last_arrival + (eager ? 0 : latency);
    for (const RouteLoad::Node& node : busiest.nodes) {
        choice.links = std::max(choice.links, links_time(r, node, size, c));
        if (node.entering == 0) continue;
        const double each = rail / (node.entering * k);
        const double fan = out + start_of(r) + pushing_time(r, at_once, node.members, c) +
                           wait_for_kernel(r, node.entering * k, node.members - 1, c, each);
        choice.network = std::max(choice.network, last_arrival + fan);
        if (!pushes_own_first()) continue;
        const double fans = pushing_time(r, node.entering * k, node.members, c);
        choice.network = std::max(choice.network, first_arrival + start_of(r) + fans);
    }
    choice.seconds = r.overhead + std::max(choice.network, choice.links);
    return choice;
}

bool AllgatherCost::pushes_own_first() const { return load(Route::direct).nodes.size() == 1; }

// The time in which so many blocks of c bytes go to all of the node. In the last round some streams
// may have nothing to do.
double AllgatherCost::pushing_time(const Rates& r, double blocks, int members, double c) const
{
    Copies copies;
    add_pushes(copies, r, blocks, members - 1, c);
    const double queue = queue_time(r, copies, members);
    if (!pushes_own_first()) return queue;
    return std::max(queue, std::ceil(copies.pushes / r.streams) * (r.link_latency + c / r.link));
}

// The time of all copies of a rank, in chunks of c bytes.
double AllgatherCost::links_time(const Rates& r, const RouteLoad::Node& node, double size,
                                 double c) const
{
    const double k = std::ceil(size / c), cuts = is_own_whole() ? 1 : k;
    const double peers = node.members - 1, entering = node.entering * k;
    const double start = start_of(r) + r.link_latency;
    Copies copies{.own = cuts, .owned = size};
    add_pushes(copies, r, cuts, peers, size / cuts);
    if (pushes_own_first())
        return start + queue_time(r, copies, node.members) +
               pushing_time(r, entering, node.members, c);
    add_pushes(copies, r, entering, peers, c);
    copies.staged = nodes_ > 1 ? k + entering : 0;
    return start + queue_time(r, copies, node.members);
}

}  // namespace hier
