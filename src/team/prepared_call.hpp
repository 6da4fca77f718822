// SPDX-License-Identifier: BSD-3-Clause
// What a team finds out before it runs a call. Later starts with the same buffers may use it again.
#pragma once

#include <cstdint>

#include "hier/transport.hpp"
#include "team/programs.hpp"

namespace hier {

struct PreparedCall {
    Binding binding{};  // all but its sequence number
    PreparedProgram* program = nullptr;
    std::uint64_t drops = 0;  // Programs::drops, when it was prepared
    bool stays = false;       // good for later starts

    bool serves(std::uint64_t drops_now) const { return stays && drops == drops_now; }
};

}  // namespace hier
