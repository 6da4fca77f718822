// SPDX-License-Identifier: BSD-3-Clause
// A collective, as the core knows it: which calls it takes, how they travel, and the plan of a
// rank. Everything below src/coll runs plans and knows no collective.
//
// One object serves one team. All functions are pure: they give equal answers on all ranks of the
// team for equal arguments. Arguments marked local may differ from rank to rank; they change a
// rank's own plan, but never its exchange with other ranks.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "coll/common/choice.hpp"
#include "coll/common/rates.hpp"
#include "hier/plan.hpp"

namespace hier {

// The arguments on which a rank's plan depends.
struct PlanInput {
    int rank;
    std::size_t bytes;   // of each rank's block that the call moves, or of the largest one
    std::size_t stride;  // from one block to the next in the receive buffers; >= bytes
    // By rank, in the receive buffers, without overlap. Empty: blocks are equal, `stride` apart.
    std::span<const Extent> blocks = {};
    Choice choice = {};
    bool in_place = false;      // local: the rank's own block is in its receive buffer already
    bool has_bounce = false;    // local: the rank's network reaches only its bounce buffer
    bool is_on_device = false;  // local: a buffer of this rank is device memory
    // local: the rank publishes its blocks to its node. With choice.publish all ranks do, or none does; with
    // choice.host_publishes those do whose buffers are in host memory.
    bool publishes = false;
};

// How many blocks of one rank fill a rank's staging memory, at most. Large calls are cut into parts,
// so that this memory is no larger than a window. 0: calls are not cut.
struct StagedBlocks {
    std::size_t result = 0;  // the result, in memory that takes the receive buffer's place
    std::size_t bounce = 0;  // the bounce buffer
};

struct Cost {
    double ours;      // seconds, with the best choice
    double fallback;  // seconds, by the module that serves the call if hier does not
};

class Collective {
public:
    virtual ~Collective() = default;

    virtual const char* name() const = 0;  // the word in messages
    // `bytes` is that of the largest block wherever a call is known by it alone. So calls with
    // smaller blocks of other ranks travel alike.
    //
    // May the core run a call of this size? If not, the caller has made an error.
    virtual bool eligible(std::size_t bytes) const = 0;
    virtual Choice choose(std::size_t bytes, const Constraints& constraints) const = 0;
    virtual Plan plan(const PlanInput& input) const = 0;
    virtual StagedBlocks staged_blocks(Route) const { return {}; }
    // May blocks lie elsewhere than at home in a rank's receive buffer, in a call that travels like
    // this? Then every operation moves bytes of one block, and a rank puts only its own block to a
    // rail peer.
    virtual bool takes_displacements(const Choice&, bool /*are_equal*/) const { return false; }
    virtual Cost cost(std::size_t bytes, const Constraints& constraints) const = 0;
    // The choices that choose() has considered and not taken. The user sees them in the log.
    virtual std::vector<Choice> alternatives(std::size_t, const Constraints&) const { return {}; }
};

// Makes a collective for a team. The topology outlives it.
using MakeCollective = std::unique_ptr<Collective> (*)(const Topology& topology,
                                                       const Rates& rates);

}  // namespace hier
