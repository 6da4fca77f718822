// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/cells/device_cells.hpp"

namespace hier {

DeviceCells::DeviceCells(const NodeContext& context)
    : context_(context), copies_(context), sender_(context, copies_), receiver_(context, copies_)
{
}

const ExportedMemory* DeviceCells::lend(int device)
{
    const ExportedMemory* const cells = receiver_.lend(device);
    is_used_ = is_used_ || cells != nullptr;
    return cells;
}

void DeviceCells::use(int peer, std::byte* cells)
{
    sender_.use(peer, cells);
    is_used_ = true;
}

Status DeviceCells::begin()
{
    is_used_ = false;
    failure_ = Status::ok;
    receiver_.begin();
    return Status::ok;
}

Status DeviceCells::put(const Transfer& transfer)
{
    sender_.put(transfer);
    return Status::in_progress;
}

Status DeviceCells::progress(Completions& completions)
{
    const int size = context_.size();
    for (int i = 1; i < size && is_used_; i++) {
        const int to = (context_.rank() + i) % size, from = (context_.rank() - i + size) % size;
        if (!failed(failure_)) failure_ = sender_.tell(to, completions);
        if (!failed(failure_)) failure_ = sender_.push(to);
        if (!failed(failure_)) failure_ = receiver_.free(from, completions);
        if (!failed(failure_)) failure_ = receiver_.take(from);
    }
    return failure_;
}

bool DeviceCells::idle()
{
    bool is_idle = !is_used_ || sender_.idle();
    is_idle = (!is_used_ || receiver_.idle()) && is_idle;
    return is_idle && !has_hung();
}

}  // namespace hier
