// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/device_cells.hpp"

#include <algorithm>
#include <bit>

#include "base/log.hpp"
#include "gpu/runtime.hpp"

namespace hier {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

std::size_t DeviceCells::shared_bytes(int ranks)
{
    return index(ranks) * index(ranks) * sizeof(Pair);
}

DeviceCells::DeviceCells(const NodeContext& context)
    : context_(context), outgoing_(index(context.size())), incoming_(index(context.size()))
{
}

DeviceCells::~DeviceCells() { give_back(); }

// After a failure peers may still be at it.
void DeviceCells::give_back()
{
    const bool has_failed = context_.raised || context_.has_failed();
    if (lent_ != nullptr && !has_failed) LentMemory::instance().give_back(lent_->base);
    lent_ = nullptr;
}

Status DeviceCells::start(std::uint64_t& ticket)
{
    const Status status = context_.queue->start(copies_, {}, ticket);
    has_hung_ = has_hung_ || status == Status::timed_out;
    return status;
}

Status DeviceCells::reached(std::uint64_t ticket)
{
    const Status status = context_.queue->reached(ticket);
    has_hung_ = has_hung_ || status == Status::timed_out;
    return status;
}

DeviceCells::Pair& DeviceCells::pair(int from, int to) const
{
    return reinterpret_cast<Pair*>(context_.segment->more())[from * context_.size() + to];
}

std::size_t DeviceCells::cell_bytes() const
{
    const std::size_t cells = index(context_.size() - 1) * cells_per_peer;
    return std::bit_floor(std::min<std::size_t>(4 << 20, max_bytes / cells));
}

std::size_t DeviceCells::offset(int from, int to) const
{
    const int place = (from - to + context_.size()) % context_.size() - 1;
    return index(place) * cells_per_peer * cell_bytes();
}

const ExportedMemory* DeviceCells::lend(int device)
{
    if (device_ != device) {
        give_back();
        device_ = device;
        const std::size_t bytes = index(context_.size() - 1) * cells_per_peer * cell_bytes();
        lent_ = LentMemory::instance().take(device, bytes);
        if (lent_ == nullptr) {
            log(HIER_LOG_INFO, "device memory that cannot be exported: through shared memory");
        } else {
            log(HIER_LOG_INFO,
                "device memory that cannot be exported: peers push into %zu MiB of device %d that "
                "can, and it is copied on",
                bytes >> 20, device);
        }
    }
    if (lent_ == nullptr) return nullptr;
    is_used_ = true;
    return &lent_->exported;
}

Status DeviceCells::begin()
{
    is_used_ = false;
    failure_ = Status::ok;
    for (Incoming& in : incoming_) in.arrived = 0;
    return Status::ok;
}

void DeviceCells::use(int peer, std::byte* cells)
{
    outgoing_[index(peer)].cells = cells + offset(context_.rank(), peer);
    is_used_ = true;
}

Status DeviceCells::put(const Transfer& transfer)
{
    outgoing_[index(transfer.peer)].puts.push_back({transfer, context_.source(transfer)});
    return Status::in_progress;
}

std::uint32_t DeviceCells::arrived(int peer) const { return incoming_[index(peer)].arrived; }

Status DeviceCells::progress(Completions& completions)
{
    const int size = context_.size();
    for (int i = 1; i < size && is_used_; i++) {
        const int to = (context_.rank() + i) % size, from = (context_.rank() - i + size) % size;
        if (!failed(failure_)) failure_ = tell(to, completions);
        if (!failed(failure_)) failure_ = push(to);
        if (!failed(failure_)) failure_ = free(from);
        if (!failed(failure_)) failure_ = take(from);
    }
    return failure_;
}

// A copy that goes on where the last one ends is joined with it. On an H200 each copy takes the CPU
// some 5 us and rests its engine for 3. Inside a device it is the launch of a kernel.
void DeviceCells::add(const gpu::Copy& copy)
{
    if (!copies_.empty()) {
        gpu::Copy& last = copies_.back();
        if (static_cast<std::byte*>(last.to) + last.bytes == copy.to &&
            static_cast<const std::byte*>(last.from) + last.bytes == copy.from) {
            last.bytes += copy.bytes;
            return;
        }
    }
    copies_.push_back(copy);
}

std::size_t DeviceCells::fragments_left(const Outgoing& out) const
{
    const std::size_t cell = cell_bytes();
    std::size_t left = 0;
    for (std::size_t i = out.next; i < out.puts.size() && left < max_at_once; i++) {
        const std::size_t done = i == out.next ? out.done : 0;
        left += (out.puts[i].transfer.slice.length - done + cell - 1) / cell;
    }
    return std::min(left, max_at_once);
}

// Starts as many fragments as go at once, or none. A fragment that went alone would come back alone,
// and so would its cell, for ever.
Status DeviceCells::push(int peer)
{
    Outgoing& out = outgoing_[index(peer)];
    const Pair& to = pair(context_.rank(), peer);
    const int size = context_.size();
    const int lane = (peer - context_.rank() + size) % size;
    const std::size_t count = fragments_left(out);
    const std::uint64_t end = to.done() + cells_per_peer;
    if (count == 0 || out.pushed + count > end) return Status::ok;
    copies_.clear();
    for (std::size_t i = 0; i < count; i++) {
        const auto& [put, source] = out.puts[out.next];
        const std::size_t cell = (out.pushed + i) % cells_per_peer;
        const std::size_t length = std::min(cell_bytes(), put.slice.length - out.done);
        const bool is_last = out.done + length == put.slice.length;
        add({out.cells + cell * cell_bytes(), source + out.done, length, lane});
        out.fragments[cell].op = put.op;
        out.fragments[cell].entry = {put.slice.target + out.done,
                                     static_cast<std::uint32_t>(length),
                                     static_cast<std::uint32_t>(is_last)};
        out.done = is_last ? 0 : out.done + length;
        out.next += is_last ? 1 : 0;
    }
    std::uint64_t ticket = 0;
    const Status status = start(ticket);
    if (failed(status)) return status;
    for (std::size_t i = 0; i < count; i++)
        out.fragments[out.pushed++ % cells_per_peer].ticket = ticket;
    return Status::ok;
}

// Sends the entries of fragments that have arrived.
Status DeviceCells::tell(int peer, Completions& completions)
{
    Outgoing& out = outgoing_[index(peer)];
    Pair& to = pair(context_.rank(), peer);
    std::uint64_t next = to.sent();
    Status status = Status::ok;
    for (; next < out.pushed; next++) {
        const Fragment& fragment = out.fragments[next % cells_per_peer];
        status = reached(fragment.ticket);
        if (status != Status::ok) break;
        to[next] = fragment.entry;
        if (fragment.entry.is_last != 0) completions.complete(fragment.op, Status::ok);
    }
    to.send(next);
    return failed(status) ? status : Status::ok;
}

// Starts to copy fragments on that the peer has told of.
Status DeviceCells::take(int peer)
{
    Incoming& in = incoming_[index(peer)];
    const Pair& from = pair(peer, context_.rank());
    const std::uint64_t end = from.arrived();
    if (context_.raised || in.started == end) return Status::ok;
    const std::byte* cells = lent_->base + offset(peer, context_.rank());
    std::size_t count = 0;
    copies_.clear();
    for (; in.started + count < end && count < max_at_once; count++) {
        const std::size_t cell = (in.started + count) % cells_per_peer;
        const Entry& entry = from[in.started + count];
        if (!fits(entry.offset, entry.length, context_.binding.receive.length)) {
            log(HIER_LOG_ERROR,
                "node rank %d sent bytes beyond the end of the receive buffer (%zu bytes)", peer,
                context_.binding.receive.length);
            return Status::mismatch;
        }
        add({context_.binding.receive.base + entry.offset, cells + cell * cell_bytes(),
             entry.length, gpu::Copy::inside});
    }
    std::uint64_t ticket = 0;
    const Status status = start(ticket);
    if (failed(status)) return status;
    for (; count > 0; count--) in.tickets[in.started++ % cells_per_peer] = ticket;
    return Status::ok;
}

// Frees the cells that have been copied from.
Status DeviceCells::free(int peer)
{
    Incoming& in = incoming_[index(peer)];
    Pair& from = pair(peer, context_.rank());
    std::uint64_t next = from.freed();
    Status status = Status::ok;
    for (; next < in.started; next++) {
        status = reached(in.tickets[next % cells_per_peer]);
        if (status != Status::ok) break;
        in.arrived += from[next].is_last;
    }
    from.free(next);
    return failed(status) ? status : Status::ok;
}

bool DeviceCells::idle()
{
    const auto is_over = [&](std::uint64_t ticket) {
        return reached(ticket) != Status::in_progress;
    };
    bool is_idle = true;
    for (int peer = 0; peer < context_.size() && is_used_; peer++) {
        const Outgoing& out = outgoing_[index(peer)];
        const Incoming& in = incoming_[index(peer)];
        for (auto i = pair(context_.rank(), peer).sent(); i < out.pushed; i++)
            is_idle = is_over(out.fragments[i % cells_per_peer].ticket) && is_idle;
        for (auto i = pair(peer, context_.rank()).freed(); i < in.started; i++)
            is_idle = is_over(in.tickets[i % cells_per_peer]) && is_idle;
    }
    return is_idle && !has_hung_;
}

void DeviceCells::end()
{
    for (Outgoing& out : outgoing_) {
        out.puts.clear();
        out.next = out.done = 0;
        out.cells = nullptr;
    }
}

}  // namespace hier
