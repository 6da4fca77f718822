// SPDX-License-Identifier: BSD-3-Clause
#include "base/disagreement.hpp"

#include "base/log.hpp"
#include "hier/call_shape.hpp"

namespace hier {

Status refuse_shape(std::uint64_t ours, std::uint64_t theirs, const char* level, int peer)
{
    const std::size_t here = CallShape::total(ours), there = CallShape::total(theirs);
    if (here != there)
        log(HIER_LOG_ERROR,
            "ranks disagree on the size of a call: %zu bytes in all here, %zu at %s rank %d", here,
            there, level, peer);
    else
        log(HIER_LOG_ERROR,
            "ranks disagree on the counts of a call: %zu bytes in all here and at %s rank %d, "
            "but in other blocks",
            here, level, peer);
    return Status::mismatch;
}

}  // namespace hier
