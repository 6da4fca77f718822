#include "plan/cost.hpp"

#include <algorithm>
#include <vector>

namespace hier {
namespace {

// In shards.
struct Load {
    struct Node {
        int members;
        int entering;  // at one rank
    };
    int rank = 0;  // out of a rank
    int nic = 0;   // in or out of a NIC
    std::vector<Node> nodes;
};

// Of whoever has most.
class Busiest {
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
            load_.rank = std::max(load_.rank, out[l]);
            entering = std::max(entering, in[l]);
        }
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

double predict_allgather(const Topology& topology, std::size_t bytes, const Rates& rates,
                         Route route, std::size_t chunk)
{
    const Load load = Busiest(topology, rates.nics, route).load();
    const std::size_t chunks = (bytes + chunk - 1) / chunk;
    const auto k = static_cast<double>(chunks);
    const double size = static_cast<double>(bytes);
    const double c = std::min(static_cast<double>(chunk), size);
    const double out =
        rates.stage > 0 ? rates.copy_issue + rates.link_latency + c / rates.stage : 0;
    const double wire = c / rates.nic;
    const double latency = rates.nic_latency;
    double rail =
        std::max(load.nic * size / rates.nic, load.rank * k * (wire + 2 * latency) / rates.depth);
    if (route == Route::ring) rail = std::max(rail, (topology.nodes() - 1) * (wire + latency));
    const double last_arrival = std::max(out, latency) + rail + latency;

    double end = topology.nodes() > 1 ? last_arrival + latency : 0;
    for (const Load::Node& node : load.nodes) {
        const double peers = node.members - 1;
        const double entering = node.entering * k;
        const double staged_out = topology.nodes() > 1 ? k : 0;
        const Copies all{(k + entering) * peers, k, staged_out, entering};
        const double queue = queue_time(rates, all, node.members, c);
        end = std::max(end, rates.copy_issue + rates.link_latency + queue);
        if (entering == 0) continue;
        const double fan =
            std::max(out, rates.copy_issue) + queue_time(rates, {peers, 0, 0, 0}, node.members, c);
        end = std::max(end, last_arrival + fan);
    }
    return rates.overhead + end;
}

AllgatherChoice choose_allgather(const Topology& topology, std::size_t bytes, const Rates& rates,
                                 std::size_t least)
{
    constexpr std::size_t page = 4096;
    // More chunks cost what the formula does not see, and so do puts that all come at once: a gain
    // that is less than this is none.
    constexpr double worthwhile = 0.99;
    AllgatherChoice best;
    for (std::size_t cuts = 1; cuts == 1 || bytes / cuts >= least; cuts *= 2) {
        const std::size_t even = (bytes + cuts - 1) / cuts;
        const std::size_t chunk = cuts == 1 ? even : (even + page - 1) / page * page;
        for (const Route route : {Route::ring, Route::direct}) {
            const double seconds = predict_allgather(topology, bytes, rates, route, chunk);
            if (best.chunk == 0 || seconds < best.seconds * worthwhile)
                best = {route, chunk, seconds};
        }
        if (topology.nodes() == 1) break;
    }
    return best;
}

}  // namespace hier
