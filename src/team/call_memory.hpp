// SPDX-License-Identifier: BSD-3-Clause
// The memory of a team's calls: whose it is, whether the network reaches it, and the bounce buffer for
// what the network does not reach.
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
