// SPDX-License-Identifier: BSD-3-Clause
// A plan made ready to run: flat tables of what follows an op, and of what each pair has to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hier/plan.hpp"
#include "hier/transport.hpp"

namespace hier {

class Program {
public:
    // The operations between this rank and one other rank on one level.
    struct Pair {
        int peer;                            // index in the level's group
        int rank;                            // in the team
        std::vector<std::uint32_t> puts;     // ops, in the order of their counts
        std::vector<std::uint32_t> awaits;   // ops, by growing count
        std::vector<std::uint32_t> readies;  // ops
    };

    // Throws SetupError when the plan is not one that the executor can run.
    Program(Plan plan, const Topology& topology, int rank);

    const Op& op(std::uint32_t i) const { return plan_.ops[i]; }
    int depth() const { return plan_.depth; }
    std::size_t bounce_bytes() const { return plan_.bounce_bytes; }
    // Binding::bounce_places
    std::span<const std::size_t> bounce_places() const { return bounce_places_; }
    std::uint32_t size() const { return static_cast<std::uint32_t>(plan_.ops.size()); }
    int peer_of(std::uint32_t i) const { return peer_[i]; }
    std::span<const std::uint32_t> dependencies() const { return pending_; }  // how many, by op
    // The ops that a call begins with: nothing precedes them, and they do not wait for a peer.
    std::span<const std::uint32_t> first_ops() const { return first_ops_; }
    std::span<const std::uint32_t> successors(std::uint32_t i) const
    {
        return std::span(successors_)
            .subspan(first_successor_[i], first_successor_[i + 1] - first_successor_[i]);
    }
    std::span<const Pair> pairs(Level level) const
    {
        return pairs_[static_cast<std::size_t>(level)];
    }
    // Is this all that the rank does: one put to all peers of its node, one block from each of them, and a copy of its
    // own block? Null: there is more.
    const NodeExchange* exchange() const { return exchange_ ? &*exchange_ : nullptr; }
    // The transfer of a put or a copy.
    Transfer transfer(std::uint32_t i) const;
    // Memory of its tables.
    std::size_t bytes() const;
    // Is there a put on the rail that does not wait for anything of the node?
    bool opens_the_rail() const;

private:
    void link_successors();
    void check_places(int rank) const;
    void build_pairs(const Topology& topology, int rank);
    void find_places(const Topology& topology, int rank);
    void find_exchange();

    Plan plan_;
    std::vector<std::uint32_t> pending_;
    std::vector<std::uint32_t> first_ops_;
    std::vector<std::uint32_t> first_successor_;
    std::vector<std::uint32_t> successors_;
    std::vector<int> peer_;
    std::vector<Pair> pairs_[2];
    std::vector<std::size_t> bounce_places_;
    std::optional<NodeExchange> exchange_;
};

}  // namespace hier
