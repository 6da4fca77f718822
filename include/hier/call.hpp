// SPDX-License-Identifier: BSD-3-Clause
// One rank's part in a collective call, as the caller passes it.
#pragma once

#include <cstddef>

#include "hier/transport.hpp"

namespace hier {

struct Call {
    std::size_t collective;  // index among those of the team
    std::size_t bytes;       // of one rank's block; equal on all ranks
    bool in_place;           // `send` is a part of `receive`
    Region send;
    Region receive;
    // Local: what the GPU's runtime could not tell of the buffers; no call takes them then.
    Status memory_error = Status::ok;
};

}  // namespace hier
