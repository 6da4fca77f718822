// SPDX-License-Identifier: BSD-3-Clause
#include "node/host/shared_copy.hpp"

#include "gpu/runtime.hpp"

namespace hier {

// Copies to memory that the runtime does not know are right too, but slow.
Status SharedCopy::start_on(int device, NodeSegment& segment, std::byte* to, const std::byte* from,
                            std::size_t bytes)
{
    (void)segment.register_with(device);
    gpu::Queue* const queue = gpu::queue(device);
    if (queue == nullptr) return Status::transport_error;
    const gpu::Copy copy{to, from, bytes, gpu::Copy::inside};
    const Status status = queue->start({&copy, 1}, {}, ticket_);
    if (failed(status)) return status;
    queue_ = queue;
    return Status::in_progress;
}

Status SharedCopy::look()
{
    if (queue_ == nullptr) return Status::ok;
    const Status status = queue_->reached(ticket_);
    if (status != Status::in_progress) queue_ = nullptr;
    return status;
}

}  // namespace hier
