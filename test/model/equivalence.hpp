// SPDX-License-Identifier: BSD-3-Clause
// Which changes of a rank's plan change nothing that anybody can see. The model has to accept those
// plans, so they are no mutants. Each function says why its change is one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model.hpp"

namespace hier::model {

bool same_pair(const Op& a, const Op& b);

class Equivalence {
public:
    // Refers to the topology and the call. `call` holds the right plans of all ranks.
    Equivalence(const Topology& topology, int rank, const Call& call);

    // An operation becomes `changed`.
    bool is_idle_await(std::size_t i, const Op& changed) const;
    // An operation goes, or waits for another peer.
    bool is_idle_wait(std::size_t i) const;
    // A dependency goes.
    bool is_implied(const Op& op, std::uint32_t dependency) const;
    // The same, or becomes one on an earlier operation.
    bool takes_its_turn(const Op& op, std::uint32_t dependency) const;
    // An await waits for one put more.
    bool is_high_enough(std::size_t i) const;
    // In a ring: those who do not write here may as well learn in the next call that this rank is in
    // the call.
    bool has_one_writer() const;
    // An operation for all of the node is for one peer.
    bool is_the_only_peer(const Op& op, int peer) const;
    // Two puts of a rail pair exchange their slices.
    bool is_order_free(const Op& first, const Op& second) const;

private:
    bool is_awaited_elsewhere(std::size_t i, const Op& op) const;
    std::uint32_t node_puts_of(int peer) const;

    const Topology& topo_;
    int rank_;
    const Call& call_;
    const Plan& plan_;
    std::vector<bool> depended_;
};

}  // namespace hier::model
