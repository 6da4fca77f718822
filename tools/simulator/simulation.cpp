// SPDX-License-Identifier: BSD-3-Clause
#include "simulation.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>

namespace bench::simulator {

// The receiver decides the order of ties, never the sender. So a node that is run alone sees the
// same order as one that is run among all. Announcements of one moment come in the order of the
// pairs, as in one pass of the executor.
bool Simulation::Event::operator>(const Event& other) const
{
    return std::tie(at, kind, rank, op, peer) >
           std::tie(other.at, other.kind, other.rank, other.op, other.peer);
}

Simulation::Simulation(const hier::Topology& topology, const Machine& machine, Symmetry symmetry,
                       const Planner& planner)
    : topology_(topology), machine_(machine), symmetry_(symmetry)
{
    const std::size_t nodes = symmetry == Symmetry::none ? std::size_t(topology.nodes()) : 1;
    nic_stride_ = 1;
    std::size_t ranks = 0;
    for (std::size_t n = 0; n < nodes; n++) {
        const std::size_t here = topology.ranks_on(static_cast<int>(n)).size();
        const auto nics = static_cast<std::size_t>(machine.nics_of(static_cast<int>(here)));
        nic_stride_ = std::max(nic_stride_, nics);
        ranks += here;
    }
    egress_.assign(nodes * nic_stride_, 0);
    ingress_ = egress_;
    memory_.assign(nodes, 0);
    network_bytes_.assign(nodes, 0);
    ranks_.reserve(ranks);
    for (int r = 0; r < static_cast<int>(ranks); r++) {
        ranks_.emplace_back(planner(r), r, machine.stripes);
        for (auto& queue : ranks_.back().queues) queue.free_streams = 1;
        if (!machine.is_host) ranks_.back().queues[Rank::others].free_streams = machine.streams;
        remaining_ += ranks_.back().size();
    }
}

Simulation::Delivery Simulation::deliver(int from, int to) const
{
    const int hops = topology_.node_of(to) - topology_.node_of(from);
    if (symmetry_ == Symmetry::none || hops == 0) {
        return {to, from};
    }
    const int nodes = topology_.nodes();
    const int node = symmetry_ == Symmetry::rotation ? (nodes - hops) % nodes : hops;
    const auto peers = topology_.ranks_on(node);
    return {topology_.local_of(to), peers[static_cast<std::size_t>(topology_.local_of(from))]};
}

void Simulation::schedule(Time at, Kind kind, int number, int peer, OpIndex op)
{
    events_.push({at, number, peer, op, kind});
}

Outcome Simulation::run()
{
    Outcome outcome;
    outcome.ops = remaining_;
    for (int r = 0; r < static_cast<int>(ranks_.size()); r++) {
        outcome.max_ops = std::max<std::uint64_t>(outcome.max_ops, rank(r).size());
        schedule(topology_.local_of(r) * from_seconds(machine_.skew), Kind::enter, r);
    }
    while (!events_.empty()) {
        const Event event = events_.top();
        events_.pop();
        now_ = event.at;
        handle(event);
    }
    if (remaining_ > 0) {
        throw std::runtime_error("the plans never end: " + std::to_string(remaining_) + " of " +
                                 std::to_string(outcome.ops) + " ops are left");
    }
    Time end = 0;
    for (const Rank& r : ranks_) {
        end = std::max(end, r.ended);
    }
    outcome.seconds = static_cast<double>(end) * 1e-12 + machine_.overhead;
    outcome.network_bytes = *std::max_element(network_bytes_.begin(), network_bytes_.end());
    return outcome;
}

}  // namespace bench::simulator
