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
        for (int n = 0; n < (is_even() ? 1 : topo_.nodes()); n++) add(n);
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

    void add(int node)
    {
        const int nodes = topo_.nodes();
        const std::size_t members = topo_.ranks_on(node).size();
        const std::size_t wanted = nics_ > 0 ? std::min(index(nics_), members) : members;
        const std::size_t nics = std::max<std::size_t>(wanted, 1);
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
        int entering = 0;
        for (std::size_t l = 0; l < members; l++) {
            load_.out = std::max(load_.out, out[l]);
            entering = std::max(entering, in[l]);
        }
        load_.in = std::max(load_.in, entering);
        for (std::size_t n = 0; n < nics; n++)
            load_.nic = std::max({load_.nic, nic_in[n], nic_out[n]});
        load_.nodes.push_back({static_cast<int>(members), entering});
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
    : nodes_(topology.nodes()), rates_(rates)
{
    load_[0] = Busiest(topology, rates.nics, Route::direct).load();
    load_[1] = Busiest(topology, rates.nics, Route::ring).load();
}

AllgatherChoice AllgatherCost::predict(std::size_t bytes, Route route, std::size_t chunk,
                                       int depth) const
{
    const Rates& r = rates_;
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
                  (busiest.out + busiest.in) * k * r.nic_issue});
    if (route == Route::ring) rail = std::max(rail, (nodes_ - 1) * (wire + latency));
    const double last_arrival = std::max(out, latency) + rail + latency;

    AllgatherChoice choice{route, chunk, depth, 0, 0, 0};
    if (nodes_ > 1) choice.network = last_arrival + latency;
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
        for (const Route route : {first, second}) {
            if (wish.route.value_or(route) != route) continue;
            const double most =
                std::max(largest_chunk(route), 2.0 * static_cast<double>(wish.least_chunk));
            const bool is_pointless = wish.chunk == 0 && rates_.nic_issue > 0 && nodes_ > 1 &&
                                      static_cast<double>(chunk) > most;
            if (is_pointless) continue;
            const int depth = window(bytes, route, chunk);
            const AllgatherChoice choice = predict(bytes, route, chunk, depth);
            if (best.chunk == 0 || choice.seconds < best.seconds * worthwhile) best = choice;
        }
    };
    // Only now: the window is a rank's own affair, and the rest must be the same on all of them.
    const auto granted = [&](AllgatherChoice choice) {
        if (wish.depth > 0) choice = predict(bytes, choice.route, choice.chunk, wish.depth);
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
