// SPDX-License-Identifier: BSD-3-Clause
// One rank's part in a collective call, as the caller passes it.
#pragma once

#include <cstddef>

#include "hier/transport.hpp"

namespace hier {

struct Call {
    std::size_t collective;  // index among the team's collectives
    std::size_t bytes;       // of one rank's block, equal on all ranks
    bool in_place;           // `send` is a part of `receive`
    Region send;
    Region receive;
    // Local: the error of the GPU's runtime if it could not tell whose memory the buffers are. Then
    // no call takes them.
    Status memory_error = Status::ok;
};

}  // namespace hier
