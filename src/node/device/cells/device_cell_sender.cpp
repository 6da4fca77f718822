// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/cells/device_cell_sender.hpp"

#include <algorithm>

namespace hier {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

DeviceCellSender::DeviceCellSender(const NodeContext& context, DeviceCellCopies& copies)
    : context_(context), layout_(context), copies_(copies), outgoing_(index(context.size()))
{
}

void DeviceCellSender::use(int peer, std::byte* cells)
{
    outgoing_[index(peer)].cells = cells + layout_.offset(context_.rank(), peer);
}

void DeviceCellSender::put(const Transfer& transfer)
{
    outgoing_[index(transfer.peer)].puts.push_back({transfer, context_.source(transfer)});
}

std::size_t DeviceCellSender::fragments_left(const Outgoing& out) const
{
    const std::size_t cell = layout_.cell_bytes();
    std::size_t left = 0;
    for (std::size_t i = out.next; i < out.puts.size() && left < Layout::max_at_once; i++) {
        const std::size_t done = i == out.next ? out.done : 0;
        left += (out.puts[i].transfer.slice.length - done + cell - 1) / cell;
    }
    return std::min(left, Layout::max_at_once);
}

// Starts as many fragments as may go at once, or none. A fragment that went alone would free its
// cell alone, so the next fragment would go alone as well, and so on for ever.
Status DeviceCellSender::push(int peer)
{
    Outgoing& out = outgoing_[index(peer)];
    const Layout::Ring to = layout_.ring(context_.rank(), peer);
    const int size = context_.size();
    const int lane = (peer - context_.rank() + size) % size;
    const std::size_t count = fragments_left(out);
    const std::uint64_t end = to.done() + Layout::cells_per_peer;
    if (count == 0 || out.pushed + count > end) return Status::ok;
    copies_.clear();
    for (std::size_t i = 0; i < count; i++) {
        const auto& [put, source] = out.puts[out.next];
        const std::size_t cell = (out.pushed + i) % Layout::cells_per_peer;
        const std::size_t length = std::min(layout_.cell_bytes(), put.slice.length - out.done);
        const bool is_last = out.done + length == put.slice.length;
        copies_.add({out.cells + cell * layout_.cell_bytes(), source + out.done, length, lane});
        out.fragments[cell].op = put.op;
        out.fragments[cell].entry = {put.slice.target + out.done,
                                     static_cast<std::uint32_t>(length),
                                     static_cast<std::uint32_t>(is_last)};
        out.done = is_last ? 0 : out.done + length;
        out.next += is_last ? 1 : 0;
    }
    std::uint64_t ticket = 0;
    const Status status = copies_.start(ticket);
    if (failed(status)) return status;
    for (std::size_t i = 0; i < count; i++)
        out.fragments[out.pushed++ % Layout::cells_per_peer].ticket = ticket;
    return Status::ok;
}

Status DeviceCellSender::tell(int peer, Completions& completions)
{
    Outgoing& out = outgoing_[index(peer)];
    Layout::Ring to = layout_.ring(context_.rank(), peer);
    const std::uint64_t first = to.sent();
    std::uint64_t next = first;
    Status status = Status::ok;
    for (; next < out.pushed; next++) {
        const Fragment& fragment = out.fragments[next % Layout::cells_per_peer];
        status = copies_.reached(fragment.ticket);
        if (status != Status::ok) break;
        to.write(next, fragment.entry);
        if (fragment.entry.is_last != 0) completions.complete(fragment.op, Status::ok);
    }
    to.send(next);
    if (next > first) completions.moved_bytes();
    return failed(status) ? status : Status::ok;
}

bool DeviceCellSender::idle()
{
    bool is_idle = true;
    for (int peer = 0; peer < context_.size(); peer++) {
        const Outgoing& out = outgoing_[index(peer)];
        for (auto i = layout_.ring(context_.rank(), peer).sent(); i < out.pushed; i++) {
            const Fragment& fragment = out.fragments[i % Layout::cells_per_peer];
            is_idle = copies_.reached(fragment.ticket) != Status::in_progress && is_idle;
        }
    }
    return is_idle;
}

void DeviceCellSender::end()
{
    for (Outgoing& out : outgoing_) {
        out.puts.clear();
        out.next = out.done = 0;
        out.cells = nullptr;
    }
}

}  // namespace hier
