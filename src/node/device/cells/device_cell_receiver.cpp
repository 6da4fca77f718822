// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/cells/device_cell_receiver.hpp"

#include "base/log.hpp"

namespace hier {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

DeviceCellReceiver::DeviceCellReceiver(const NodeContext& context, DeviceCellCopies& copies)
    : context_(context), layout_(context), copies_(copies), incoming_(index(context.size()))
{
}

DeviceCellReceiver::~DeviceCellReceiver() { give_back(); }

void DeviceCellReceiver::begin()
{
    for (Incoming& in : incoming_) in.arrived = 0;
}

// After a failure peers may still write into the cells.
void DeviceCellReceiver::give_back()
{
    const bool has_failed = context_.raised || context_.has_failed();
    if (lent_ != nullptr && !has_failed) LentMemory::instance().give_back(lent_->base);
    lent_ = nullptr;
}

const ExportedMemory* DeviceCellReceiver::lend(int device)
{
    if (device_ != device) {
        give_back();
        device_ = device;
        const std::size_t bytes = layout_.lent_bytes();
        lent_ = layout_.exists() ? LentMemory::instance().take(device, bytes) : nullptr;
        if (lent_ == nullptr) {
            log(HIER_LOG_INFO, "device memory that cannot be exported: through shared memory");
        } else {
            log(HIER_LOG_INFO,
                "device memory that cannot be exported: peers push into %zu MiB of device %d that "
                "can, and it is copied on",
                bytes >> 20, device);
        }
    }
    return lent_ != nullptr ? &lent_->exported : nullptr;
}

Status DeviceCellReceiver::take(int peer)
{
    Incoming& in = incoming_[index(peer)];
    const Layout::Ring from = layout_.ring(peer, context_.rank());
    const std::uint64_t end = from.arrived();
    if (context_.raised || in.started == end) return Status::ok;
    if (lent_ == nullptr || !from.can_hold(in.started, end)) {
        log(HIER_LOG_ERROR, "node rank %d sent fragments for cells that it has not", peer);
        return Status::transport_error;
    }
    const std::byte* cells = lent_->base + layout_.offset(peer, context_.rank());
    std::size_t count = 0;
    copies_.clear();
    for (; in.started + count < end && count < Layout::max_at_once; count++) {
        const std::size_t cell = (in.started + count) % Layout::cells_per_peer;
        const Layout::Entry entry = from.read(in.started + count);
        const std::size_t bytes = context_.binding.receive.length;
        if (const char* fault = fault_of(entry, layout_.cell_bytes(), bytes); fault != nullptr) {
            log(HIER_LOG_ERROR, "node rank %d sent %s (%zu bytes)", peer, fault, bytes);
            return Status::mismatch;
        }
        in.is_last[cell] = entry.is_last != 0;
        copies_.add({context_.binding.receive.base + entry.offset,
                     cells + cell * layout_.cell_bytes(), entry.length, gpu::Copy::inside});
    }
    std::uint64_t ticket = 0;
    const Status status = copies_.start(ticket);
    if (failed(status)) return status;
    for (; count > 0; count--) in.tickets[in.started++ % Layout::cells_per_peer] = ticket;
    return Status::ok;
}

Status DeviceCellReceiver::free(int peer, Completions& completions)
{
    Incoming& in = incoming_[index(peer)];
    Layout::Ring from = layout_.ring(peer, context_.rank());
    const std::uint64_t first = from.freed();
    std::uint64_t next = first;
    Status status = Status::ok;
    for (; next < in.started; next++) {
        status = copies_.reached(in.tickets[next % Layout::cells_per_peer]);
        if (status != Status::ok) break;
        in.arrived += in.is_last[next % Layout::cells_per_peer] ? 1 : 0;
    }
    from.free(next);
    if (next > first) completions.moved_bytes();
    return failed(status) ? status : Status::ok;
}

std::uint32_t DeviceCellReceiver::arrived(int peer) const { return incoming_[index(peer)].arrived; }

bool DeviceCellReceiver::idle()
{
    bool is_idle = true;
    for (int peer = 0; peer < context_.size(); peer++) {
        const Incoming& in = incoming_[index(peer)];
        for (auto i = layout_.ring(peer, context_.rank()).freed(); i < in.started; i++) {
            const std::uint64_t ticket = in.tickets[i % Layout::cells_per_peer];
            is_idle = copies_.reached(ticket) != Status::in_progress && is_idle;
        }
    }
    return is_idle;
}

}  // namespace hier
