// SPDX-License-Identifier: BSD-3-Clause
// One rank's part in a collective call, as the caller passes it.
#pragma once

#include <cstddef>

#include "hier/transport.hpp"

namespace hier {

struct Call {
    std::size_t collective;  // index among the team's collectives
    std::size_t bytes;       // of each rank's block that this call moves, equal on all ranks
    bool in_place;           // `send` is a part of `receive`
    Region send;
    Region receive;
    // Local: the error of the GPU's runtime if it could not tell whose memory the buffers are. Then
    // no call takes them.
    Status memory_error = Status::ok;
    // From the beginning of one block in `receive` to that of the next; equal on all ranks. 0: they
    // lie side by side. A part of a larger call leaves gaps.
    std::size_t stride = 0;

    std::size_t pitch() const { return stride > 0 ? stride : bytes; }
};

}  // namespace hier
