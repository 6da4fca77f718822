#include "plan/cost.hpp"

#include <algorithm>
#include <cmath>

namespace hier {

// Of whoever has most.
class AllgatherCost::Busiest {
public:
    Busiest(const Topology& topology, int nics, Route route)
        : topo_(topology), nics_(nics), route_(route), by_distance_(index(topology.nodes()))
    {
    }

    Load load()
    {
        for (int n = 0; n < (is_even() ? 1 : topo_.nodes()); n++) {
            if (route_ == Route::bundles) {
                add_bundles(n);
            } else {
                add(n);
            }
        }
        if (route_ == Route::direct) {
            // All put to the node at the same distance at the same time: where its ranks are fewer,
            // the others wait for it.
            load_.nic = 0;
            for (const int most : by_distance_) load_.nic += most;
        }
        return load_;
    }

private:
    static std::size_t index(int i) { return static_cast<std::size_t>(i); }

    bool is_even() const
    {
        for (int n = 1; n < topo_.nodes(); n++)
            if (topo_.ranks_on(n).size() != topo_.ranks_on(0).size()) return false;
        return true;
    }

    void add_bundles(int node)
    {
        const int nodes = topo_.nodes();
        const std::size_t members = topo_.ranks_on(node).size();
        const std::size_t nics = nics_of(members);
        std::vector<int> in(members), out(members), nic_in(nics), nic_out(nics);
        for (int distance = 1; distance < nodes; distance++) {
            const int from = (node + nodes - distance) % nodes;
            const int to = (node + distance) % nodes;
            const auto entry = index(topo_.local_of(topo_.entry(topo_.leader(from, node), node)));
            const auto leader = index(topo_.local_of(topo_.leader(node, to)));
            in[entry] += messages(from);
            out[leader] += messages(node);
            nic_in[entry % nics] += static_cast<int>(topo_.ranks_on(from).size());
            nic_out[leader % nics] += static_cast<int>(members);
        }
        note(members, in, out);
        for (std::size_t n = 0; n < nics; n++)
            load_.nic = std::max({load_.nic, nic_in[n], nic_out[n]});
    }

    // In which a node's bundle goes: one for each run of neighbours in rank order.
    int messages(int node) const
    {
        std::vector<int> ranks(topo_.ranks_on(node).begin(), topo_.ranks_on(node).end());
        std::sort(ranks.begin(), ranks.end());
        int runs = 1;
        for (std::size_t i = 1; i < ranks.size(); i++) runs += ranks[i] != ranks[i - 1] + 1;
        return runs;
    }

    std::size_t nics_of(std::size_t members) const
    {
        return std::max<std::size_t>(nics_ > 0 ? std::min(index(nics_), members) : members, 1);
    }

    void note(std::size_t members, const std::vector<int>& in, const std::vector<int>& out)
    {
        const int entering = *std::max_element(in.begin(), in.end());
        load_.out = std::max(load_.out, *std::max_element(out.begin(), out.end()));
        load_.in = std::max(load_.in, entering);
        load_.nodes.push_back({static_cast<int>(members), entering});
    }

    void add(int node)
    {
        const int nodes = topo_.nodes();
        const std::size_t members = topo_.ranks_on(node).size();
        const std::size_t nics = nics_of(members);
        std::vector<int> in(members), out(members), nic_in(nics), nic_out(nics);
        for (int distance = 1; distance < nodes; distance++) {
            std::vector<int> in_now(nics), out_now(nics);
            const int from = (node + nodes - distance) % nodes;
            for (const int source : topo_.ranks_on(from)) {
                const auto entry = index(topo_.local_of(topo_.entry(source, node)));
                const bool goes_on = route_ == Route::ring && distance < nodes - 1;
                in[entry]++;
                in_now[entry % nics]++;
                out[entry] += goes_on;
                nic_out[entry % nics] += goes_on;
            }
            for (std::size_t l = 0; l < members; l++) {
                const bool own_goes = route_ == Route::direct || distance == 1;
                out[l] += own_goes;
                out_now[l % nics] += own_goes;
            }
            int& most = by_distance_[index(distance)];
            for (std::size_t n = 0; n < nics; n++) {
                nic_in[n] += in_now[n];
                nic_out[n] += out_now[n];
                most = std::max({most, in_now[n], out_now[n]});
            }
        }
        note(members, in, out);
        for (std::size_t n = 0; n < nics; n++)
            load_.nic = std::max({load_.nic, nic_in[n], nic_out[n]});
    }

    const Topology& topo_;
    int nics_;
    Route route_;
    std::vector<int> by_distance_;  // through one NIC
    Load load_;
};

namespace {

// A rank's queue of copies: how many of each kind, of c bytes each.
struct Copies {
    double pushes = 0, own = 0, out = 0, in = 0;
};

// As long as the queue never rests: its streams, its issue, or the busiest port. Copies out come
// first and have one port: nothing else moves beside them.
double queue_time(const Rates& r, const Copies& n, int members, double c)
{
    const double stage = r.stage > 0 ? c / r.stage : 0;
    const double in = r.stage > 0 ? n.in : 0;
    const double streams = n.pushes * (r.link_latency + c / r.link) +
                           n.own * (r.link_latency + c / r.own) + in * (r.link_latency + stage);
    const double issue = (n.pushes + n.own + in) * r.copy_issue;
    const double memory = r.node > 0 ? (n.pushes + n.own) * members * c / r.node : 0;
    const double out = std::max({(r.link_latency + stage) / r.streams, stage, r.copy_issue});
    return (r.stage > 0 ? n.out * out : 0) +
           std::max({streams / r.streams, issue, n.pushes * c / r.link, in * stage, memory});
}

}  // namespace

AllgatherCost::AllgatherCost(const Topology& topology, const Rates& rates)
    : ranks_(topology.size()), nodes_(topology.nodes()), rates_(rates)
{
    for (int n = 0; n < nodes_; n++)
        most_members_ = std::max(most_members_, static_cast<int>(topology.ranks_on(n).size()));
    for (const Route route : all_routes)
        load_[static_cast<std::size_t>(route)] = Busiest(topology, rates.nics, route).load();
}

// Those for shards of this size.
Rates AllgatherCost::rates_for(std::size_t bytes) const
{
    Rates r = rates_;
    if (bytes <= r.small_bytes) r.link_latency = r.small_latency;
    return r;
}

double AllgatherCost::previous(std::size_t bytes) const
{
    // Through Open MPI's shared memory, a message and a byte (8 and 16 ranks on as many cores, 16 B
    // to 16 KiB).
    constexpr double message = 1e-6, node_rate = 2.5e9;
    const double rounds = std::ceil(std::log2(ranks_));
    const double size = static_cast<double>(bytes);
    if (nodes_ == 1) return rates_.detour + rounds * message + (ranks_ - 1) * size / node_rate;
    // In the last rounds every rank sends to another node what it has.
    const int nics = rates_.nics > 0 ? std::min(rates_.nics, most_members_) : most_members_;
    const double sharing = std::ceil(static_cast<double>(most_members_) / nics);
    const double through_nic = sharing * (ranks_ - most_members_) * size;
    return rates_.detour + rounds * (rates_.nic_latency + rates_.nic_issue) +
           through_nic / rates_.nic;
}

AllgatherChoice AllgatherCost::bundled(std::size_t bytes, bool eager) const
{
    const Rates r = rates_for(bytes);
    const double issue = eager ? r.nic_issue / 2 : r.nic_issue;
    const Load& busiest = load(Route::bundles);
    const double size = static_cast<double>(bytes);
    const double stage = r.stage > 0 ? r.copy_issue + r.link_latency : 0;  // out, and in
    AllgatherChoice choice{Route::bundles, bytes, std::clamp(busiest.out, 1, most_depth), 0, 0, 0};
    double handshake = 0;  // beyond the gathering
    for (const Load::Node& node : busiest.nodes) {
        const double peers = node.members - 1;
        const double all = size * node.members;
        const Copies own{peers, 1, 0, 0}, bundle{peers, 0, 0, 0};
        const double gather = r.copy_issue + queue_time(r, own, node.members, size);
        const double fan = node.entering * queue_time(r, bundle, node.members, all);
        choice.chunk = std::max(choice.chunk, bytes * static_cast<std::size_t>(node.members));
        choice.links = std::max(choice.links, gather + fan);
        handshake = std::max(handshake, r.nic_latency - gather);
    }
    const double rail = std::max(busiest.nic * size / r.nic, (busiest.out + busiest.in) * issue);
    choice.network = (eager ? 0 : handshake) + rail + r.nic_latency + 2 * stage;
    choice.seconds = r.overhead + choice.links + choice.network;
    return choice;
}

AllgatherChoice AllgatherCost::predict(std::size_t bytes, Route route, std::size_t chunk, int depth,
                                       bool eager) const
{
    if (route == Route::bundles) return bundled(bytes, eager);
    const Rates r = rates_for(bytes);
    const double issue = eager ? r.nic_issue / 2 : r.nic_issue;
    const Load& busiest = load(route);
    const std::size_t chunks = (bytes + chunk - 1) / chunk;
    const auto k = static_cast<double>(chunks);
    const double size = static_cast<double>(bytes);
    const double c = std::min(static_cast<double>(chunk), size);
    const double out = r.stage > 0 ? r.copy_issue + r.link_latency + c / r.stage : 0;
    const double wire = c / r.nic;
    const double latency = r.nic_latency;
    double rail =
        std::max({busiest.nic * size / r.nic, busiest.out * k * (wire + 2 * latency) / depth,
                  (busiest.out + busiest.in) * k * issue});
    if (route == Route::ring) rail = std::max(rail, (nodes_ - 1) * (wire + latency));
    const double last_arrival = std::max(out, eager ? 0 : latency) + rail + latency;

    AllgatherChoice choice{route, chunk, depth, 0, 0, 0};
    if (nodes_ > 1) choice.network = last_arrival + (eager ? 0 : latency);
    for (const Load::Node& node : busiest.nodes) {
        const double peers = node.members - 1;
        const double entering = node.entering * k;
        const double staged_out = nodes_ > 1 ? k : 0;
        const Copies all{(k + entering) * peers, k, staged_out, entering};
        const double queue = queue_time(r, all, node.members, c);
        choice.links = std::max(choice.links, r.copy_issue + r.link_latency + queue);
        if (entering == 0) continue;
        const double fan =
            std::max(out, r.copy_issue) + queue_time(r, {peers, 0, 0, 0}, node.members, c);
        choice.network = std::max(choice.network, last_arrival + fan);
    }
    choice.seconds = r.overhead + std::max(choice.network, choice.links);
    return choice;
}

// Bundles are for messages that cost more than their bytes.
bool AllgatherCost::is_choice(Route route, const AllgatherWish& wish) const
{
    return route != Route::bundles || (wish.eager && nodes_ > 1);
}

// As few puts in flight as the NIC needs.
int AllgatherCost::window(std::size_t bytes, Route route, std::size_t chunk) const
{
    // One is on its way while the next is being posted.
    constexpr double least = 2;
    const Load& busiest = load(route);
    if (busiest.nic == 0) return static_cast<int>(least);
    const double size = static_cast<double>(bytes);
    const double c = std::min(static_cast<double>(chunk), size);
    const double k = std::ceil(size / c);
    const double needed = busiest.out * k * (c / rates_.nic + 2 * rates_.nic_latency) /
                          (busiest.nic * size / rates_.nic);
    return static_cast<int>(std::clamp(std::ceil(needed), least, double{most_depth}));
}

// A put whose cost is half a percent of its time on the wire gains nothing from being larger; the
// network and what shares it run more evenly with smaller ones than the formula knows (4 H200 on 2
// nodes over TCP: 64 MiB in chunks of 2 MiB took 7 % more than in chunks of 1 MiB).
double AllgatherCost::largest_chunk(Route route) const
{
    constexpr double share = 0.005;
    const Load& busiest = load(route);
    const double sharing = static_cast<double>(std::max(busiest.nic, 1)) / std::max(busiest.out, 1);
    return rates_.nic_issue * rates_.nic / (share * sharing);
}

AllgatherChoice AllgatherCost::choose(std::size_t bytes, const AllgatherWish& wish) const
{
    constexpr std::size_t page = 4096;
    // More chunks cost what the formula does not see, and so do puts that all come at once: a gain
    // that is less than this is none.
    constexpr double worthwhile = 0.99;
    AllgatherChoice best;
    const auto consider = [&](std::size_t chunk) {
        // A ring of two is nothing but direct puts. With two neighbours only, no link has to take
        // from several at once.
        const Route first = nodes_ > 2 ? Route::ring : Route::direct;
        const Route second = nodes_ > 2 ? Route::direct : Route::ring;
        for (const Route route : {first, second, Route::bundles}) {
            if (wish.route ? *wish.route != route : !is_choice(route, wish)) continue;
            const double most =
                std::max(largest_chunk(route), 2.0 * static_cast<double>(wish.least_chunk));
            const bool is_pointless = wish.chunk == 0 && rates_.nic_issue > 0 && nodes_ > 1 &&
                                      static_cast<double>(chunk) > most;
            if (is_pointless) continue;
            const int depth = window(bytes, route, chunk);
            const AllgatherChoice choice = predict(bytes, route, chunk, depth, wish.eager);
            if (best.chunk == 0 || choice.seconds < best.seconds * worthwhile) best = choice;
        }
    };
    // Only now: the window is a rank's own affair, and the rest must be the same on all of them.
    const auto granted = [&](AllgatherChoice choice) {
        if (choice.route == Route::bundles) {
            if (wish.chunk > 0) choice.chunk = std::min(choice.chunk, wish.chunk);
            if (wish.depth > 0) choice.depth = wish.depth;
        } else if (wish.depth > 0) {
            choice = predict(bytes, choice.route, choice.chunk, wish.depth, wish.eager);
        }
        return choice;
    };
    if (wish.chunk > 0 && nodes_ > 1) {
        consider(std::min(wish.chunk, bytes));
        return granted(best);
    }
    for (std::size_t cuts = 1; cuts == 1 || bytes / cuts >= wish.least_chunk; cuts *= 2) {
        const std::size_t even = (bytes + cuts - 1) / cuts;
        consider(cuts == 1 ? even : (even + page - 1) / page * page);
        if (nodes_ == 1) break;  // nothing to overlap with: every cut only costs
    }
    return granted(best);
}

}  // namespace hier
