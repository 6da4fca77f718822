// SPDX-License-Identifier: BSD-3-Clause
// Records that the ranks of a team have sent one another, checked before they are used.
#pragma once

#include <cstddef>
#include <vector>

#include "base/error.hpp"
#include "team/group.hpp"

namespace hier {

// Throws SetupError on all ranks if a record is wrong. All see the same records, and one of them logs
// the cause.
template <class Record>
void require_sound(const Group& team, const std::vector<Record>& records, const char* what)
{
    for (std::size_t r = 0; r < records.size(); r++) {
        const char* const fault = fault_of(records[r]);
        if (fault == nullptr) continue;
        const std::string cause = format("rank %zu sends a wrong record of %s: %s", r, what, fault);
        if (team.rank() == 0) throw SetupError(cause);
        throw KnownFailure(cause);
    }
}

}  // namespace hier
