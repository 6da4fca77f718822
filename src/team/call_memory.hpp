// SPDX-License-Identifier: BSD-3-Clause
// The memory of a team's calls. Whose memory is a buffer, and does the network reach it? If not, a
// bounce buffer takes its place on the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "coll/common/choice.hpp"
#include "exec/program.hpp"
#include "hier/call.hpp"
#include "team/setup.hpp"

namespace hier {

class CallMemory {
public:
    // `setup` outlives this object. `rank` is this rank in the team.
    CallMemory(const TeamSetup& setup, int rank) : setup_(setup), rank_(rank) {}

    // Fills in all of the binding but its sequence number and its bounce buffer. `needs_bounce`: the
    // call needs one. The binding refers to the call.
    Status bind(const Call& call, const Choice& choice, Binding& binding, bool& needs_bounce);
    // Does the binding of this call serve the next one with the same buffers? A rail registers them in
    // each call, and managed memory moves between the host and devices.
    bool stays(const Call& call) const
    {
        return !setup_.rail && call.receive.memory.kind != MemoryKind::managed &&
               call.send.memory.kind != MemoryKind::managed;
    }
    // Borrows the bounce buffer for this program.
    Status bind_bounce(const Program& program, Binding& binding);
    // The call is over. After a failure peers may still write into its bounce buffer.
    void end(bool has_failed);

private:
    Status classify_memory(const Call& call, Binding& binding) const;
    bool is_in_reach(const Choice& choice, const Binding& binding) const;

    const TeamSetup& setup_;
    int rank_;
    std::shared_ptr<std::byte> bounce_;  // of the call that runs
    std::uint64_t bindings_ = 0;         // so far
};

}  // namespace hier
