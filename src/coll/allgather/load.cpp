// SPDX-License-Identifier: BSD-3-Clause
#include "coll/allgather/load.hpp"

#include <algorithm>

namespace hier {
namespace {

class Busiest {
public:
    Busiest(const Topology& topology, int nics, Route route)
        : topo_(topology), nics_(nics), route_(route), by_distance_(index(topology.nodes()))
    {
        for (int n = 0; n < topology.nodes(); n++) messages_.push_back(messages_of(n));
    }

    RouteLoad load()
    {
        for (int n = 0; n < (are_alike() ? 1 : topo_.nodes()); n++) {
            if (route_ == Route::bundles) {
                add_bundles(n);
            } else {
                add(n);
            }
        }
        if (route_ == Route::direct) {
            // All ranks put to the node at one distance at the same time. If that node has fewer
            // ranks, the others wait for it.
            load_.nic = 0;
            for (const int most : by_distance_) load_.nic += most;
        }
        if (route_ != Route::bundles) load_.nic_messages = load_.nic;
        return load_;
    }

private:
    static std::size_t index(int i) { return static_cast<std::size_t>(i); }

    bool are_alike() const
    {
        for (int n = 1; n < topo_.nodes(); n++) {
            if (topo_.ranks_on(n).size() != topo_.ranks_on(0).size()) return false;
            if (route_ == Route::bundles && messages_[index(n)] != messages_[0]) return false;
        }
        return true;
    }

    void add_bundles(int node)
    {
        const int nodes = topo_.nodes();
        const std::size_t members = topo_.ranks_on(node).size();
        const std::size_t nics = nics_of(members);
        std::vector<int> in(members), out(members), nic_in(nics), nic_out(nics);
        std::vector<int> messages_in(nics), messages_out(nics), shards_in(members);
        for (int distance = 1; distance < nodes; distance++) {
            const int from = (node + nodes - distance) % nodes;
            const int to = (node + distance) % nodes;
            const auto entry = index(topo_.local_of(topo_.entry(topo_.leader(from, node), node)));
            const auto leader = index(topo_.local_of(topo_.leader(node, to)));
            in[entry] += messages_[index(from)];
            shards_in[entry] += static_cast<int>(topo_.ranks_on(from).size());
            out[leader] += messages_[index(node)];
            nic_in[entry % nics] += static_cast<int>(topo_.ranks_on(from).size());
            nic_out[leader % nics] += static_cast<int>(members);
            messages_in[entry % nics] += messages_[index(from)];
            messages_out[leader % nics] += messages_[index(node)];
        }
        note(in, out, nic_in, nic_out);
        load_.nodes.back().shards = most(shards_in);
        load_.nic_messages = std::max({load_.nic_messages, most(messages_in), most(messages_out)});
    }

    // The messages of a node's bundle: one for each run of neighbours in rank order.
    int messages_of(int node) const
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

    static int most(const std::vector<int>& of) { return *std::max_element(of.begin(), of.end()); }

    // Notes the loads of a node's ranks and network devices.
    void note(const std::vector<int>& in, const std::vector<int>& out,
              const std::vector<int>& nic_in, const std::vector<int>& nic_out)
    {
        load_.out = std::max(load_.out, most(out));
        load_.in = std::max(load_.in, most(in));
        load_.nic = std::max({load_.nic, most(nic_in), most(nic_out)});
        load_.nodes.push_back({static_cast<int>(in.size()), most(in), most(in)});
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
            int& at_once = by_distance_[index(distance)];
            for (std::size_t n = 0; n < nics; n++) {
                nic_in[n] += in_now[n];
                nic_out[n] += out_now[n];
                at_once = std::max({at_once, in_now[n], out_now[n]});
            }
        }
        note(in, out, nic_in, nic_out);
    }

    const Topology& topo_;
    int nics_;
    Route route_;
    std::vector<int> by_distance_;  // through one NIC
    std::vector<int> messages_;     // by node
    RouteLoad load_;
};

}  // namespace

RouteLoad route_load(const Topology& topology, int nics, Route route)
{
    return Busiest(topology, nics, route).load();
}

}  // namespace hier
