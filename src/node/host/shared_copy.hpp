// SPDX-License-Identifier: BSD-3-Clause
// A copy between the memory that the node shares and a buffer of this rank. The CPU makes it at once. If the buffer
// belongs to a device, the device's copy engines make it, and the rank comes back later for the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hier/gpu.hpp"
#include "hier/transport.hpp"
#include "node/node_segment.hpp"

namespace hier {

class SharedCopy {
public:
    // `own` is the buffer of this rank, which `from` or `to` lies in. ok: the copy is done. in_progress: look() tells.
    Status start(NodeSegment& segment, const Region& own, std::byte* to, const std::byte* from,
                 std::size_t bytes)
    {
        if (bytes > 0 && is_of_device(own.memory))
            return start_on(own.memory.device, segment, to, from, bytes);
        std::memcpy(to, from, bytes);
        return Status::ok;
    }
    // ok: no copy is under way. An error is told once. timed_out: the copy may go on for ever.
    Status look();

private:
    Status start_on(int device, NodeSegment& segment, std::byte* to, const std::byte* from,
                    std::size_t bytes);

    gpu::Queue* queue_ = nullptr;  // null: no copy is under way
    std::uint64_t ticket_ = 0;
};

}  // namespace hier
