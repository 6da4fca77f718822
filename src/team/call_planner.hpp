// SPDX-License-Identifier: BSD-3-Clause
// Decides how a team's calls travel. Asks the collective, keeps the programs, and tells the user
// once for each size.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "base/statistics.hpp"
#include "coll/common/collective.hpp"
#include "hier/call.hpp"
#include "team/programs.hpp"
#include "team/setup.hpp"

namespace hier {

class CallPlanner {
public:
    // `setup` is complete. It and `tally` outlive the planner. `rank` is this rank in the team.
    CallPlanner(const TeamSetup& setup, int rank, std::span<const MakeCollective> collectives,
                Tally& tally);

    // Is there such a collective, and does it take a call of this size?
    bool takes(const Call& call) const;
    const char* name_of(std::size_t collective) const { return collectives_[collective]->name(); }
    // Equal on all ranks, but for the depth.
    Choice choose(const Call& call) const
    {
        return choose(call.collective, call.bytes, sizes_of(call.blocks));
    }
    // Keeps the program for later calls. The reference is good until the next prepare().
    PreparedProgram& prepare(const ProgramKey& key, const Choice& choice);
    // The same for a call that runs and goes on with another program. Such a program is not counted and the user is not
    // told of it. `running` stays until the next prepare().
    PreparedProgram& prepare_instead(const PreparedProgram& running, const ProgramKey& key,
                                     const Choice& choice);
    std::uint64_t drops() const { return programs_.drops(); }  // Programs::drops
    // Bytes of each block that one call should move at most, in a call of so many bytes a block.
    std::size_t part_bytes(std::size_t collective, std::size_t bytes) const;
    // May blocks be displaced in a call that travels like this?
    bool takes_displacements(std::size_t collective, const Choice& choice, bool are_equal) const
    {
        return setup_.node->takes_displacements(choice.publish) &&
               collectives_[collective]->takes_displacements(choice, are_equal);
    }
    // The same for a call of so many bytes a block, and for its parts, however skewed they are.
    bool takes_displacements(std::size_t collective, std::size_t bytes, bool are_equal) const;
    // Bytes of all ranks together below which the fallback module is expected to be faster.
    std::size_t min_bytes(std::size_t collective) const;

private:
    Choice choose(std::size_t collective, std::size_t bytes, BlockSizes sizes) const;
    // nullptr: the tuning file says nothing of this size.
    const TunedSize* tuned_size(std::size_t collective, std::size_t bytes) const;
    // What the user's variables demand.
    Constraints stated() const;
    // The same, what the tuning file says of this size, and what blocks that differ do not allow.
    Constraints constraints(std::size_t collective, std::size_t bytes, BlockSizes sizes) const;
    std::size_t staged_blocks(std::size_t collective, Route route) const;
    PreparedProgram& make_program(const ProgramKey& key, const Choice& choice);
    void report(const ProgramKey& key, const Choice& choice);

    const TeamSetup& setup_;
    int rank_;
    Tally& tally_;
    std::vector<std::unique_ptr<Collective>> collectives_;
    std::vector<const TunedLayout*>
        tuned_;  // of each collective; nullptr: this layout is not tuned
    Programs programs_;
    // Sizes that the user has been told of: collective, bytes, bounce buffer, device memory, published,
    // equal blocks.
    std::set<std::tuple<std::size_t, std::size_t, bool, bool, bool, bool>> told_;
};

}  // namespace hier
