// SPDX-License-Identifier: BSD-3-Clause
// The memory of a team's calls. Whose memory is a buffer, and does the network reach it? If not, a
// bounce buffer takes its place on the network.
#pragma once

#include <memory>

#include "coll/common/choice.hpp"
#include "hier/call.hpp"
#include "memory/host_memory.hpp"
#include "team/setup.hpp"

namespace hier {

class CallMemory {
public:
    // `setup` outlives this object.
    explicit CallMemory(const TeamSetup& setup) : setup_(setup) {}

    // Fills in all of the binding but its sequence number.
    Status bind(const Call& call, const Choice& choice, Binding& binding);

private:
    Status classify_memory(const Call& call, Binding& binding) const;
    bool reserve_bounce(Binding& binding);

    const TeamSetup& setup_;
    std::shared_ptr<HostMemory> bounce_;  // none until a call needs it
};

}  // namespace hier
