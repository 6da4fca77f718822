// SPDX-License-Identifier: BSD-3-Clause
#include "node/host/shm_cells.hpp"

#include <algorithm>
#include <cstring>

#include "base/log.hpp"

namespace hier {

ShmCells::ShmCells(const NodeContext& context)
    : context_(context), shape_(context.segment->layout().cells),
      rings_(context.segment->layout().cell_rings), cells_(shape_.count),
      outgoing_(static_cast<std::size_t>(context.size())),
      incoming_(static_cast<std::size_t>(context.size()))
{
    for (Cell& cell : cells_) cell.until.resize(outgoing_.size());
}

Status ShmCells::begin()
{
    for (Incoming& in : incoming_) in.arrived = 0;
    return Status::ok;
}

// Forgets what the cells hold, because their sources may change when the call is over.
void ShmCells::end()
{
    for (Cell& cell : cells_) {
        cell.content = nullptr;
        cell.filling = {};
        cell.is_fresh = false;
    }
    for (Outgoing& out : outgoing_) {
        out.puts.clear();
        out.next = out.done = 0;
    }
    unsent_ = 0;
}

Status ShmCells::put(const Transfer& transfer)
{
    outgoing_[static_cast<std::size_t>(transfer.peer)].puts.push_back(transfer);
    unsent_++;
    return Status::in_progress;
}

std::uint32_t ShmCells::arrived(int peer) const
{
    return incoming_[static_cast<std::size_t>(peer)].arrived;
}

// Copies by the CPU are over when progress() returns. Only copies by copy engines can be under way.
bool ShmCells::idle()
{
    bool is_idle = true;
    for (Cell& cell : cells_) is_idle = is_done(cell.filling) && is_idle;
    for (Incoming& in : incoming_) {
        for (Work& work : in.work) is_idle = is_done(work.copy) && is_idle;
    }
    return is_idle && !has_hung();
}

Status ShmCells::progress(Completions& completions)
{
    const Status status = receive(completions);
    if (unsent_ > 0) send(completions);
    return failed(failure_) ? failure_ : status;
}

bool ShmCells::is_done(SharedCopy& copy) { return keep(copy.look()) != Status::in_progress; }

Status ShmCells::keep(Status status)
{
    has_hung_ = has_hung_ || status == Status::timed_out;
    if (failed(status) && !failed(failure_)) failure_ = status;
    return status;
}

bool ShmCells::is_free(const Cell& cell) const
{
    if (cell.is_fresh) return false;
    for (int peer = 0; peer < context_.size(); peer++) {
        const std::uint64_t until = cell.until[static_cast<std::size_t>(peer)];
        if (until > 0 && queue(context_.rank(), peer).done() < until) return false;
    }
    return true;
}

int ShmCells::cell_with(const Region& region, const Fragment& fragment, std::size_t& copied)
{
    for (std::size_t i = 0; i < cells_.size(); i++) {
        Cell& cell = cells_[i];
        if (cell.content != fragment.content || cell.length != fragment.length ||
            cell.target != fragment.target)
            continue;
        return is_done(cell.filling) && !failed(failure_) ? static_cast<int>(i) : -1;
    }
    for (std::size_t i = 0; i < cells_.size(); i++) {
        if (!is_free(cells_[i])) continue;
        return fill(i, region, fragment, copied) ? static_cast<int>(i) : -1;
    }
    return -1;
}

// False: the bytes are not there yet.
bool ShmCells::fill(std::size_t number, const Region& region, const Fragment& fragment,
                    std::size_t& copied)
{
    if (failed(failure_)) return false;
    Cell& cell = cells_[number];
    std::byte* const at = cell_at(context_.rank(), number);
    cell.content = fragment.content;
    cell.length = fragment.length;
    cell.target = fragment.target;
    cell.is_fresh = true;
    std::fill(cell.until.begin(), cell.until.end(), 0);
    const CellHeader header{fragment.target, fragment.length};
    std::memcpy(at, &header, sizeof header);
    const Status status = keep(cell.filling.start(*context_.segment, region, content_of(at),
                                                  fragment.content, fragment.length));
    if (status != Status::ok) return false;
    copied += fragment.length;
    return true;
}

bool ShmCells::send_fragment(int peer, std::size_t& copied)
{
    Outgoing& out = outgoing_[static_cast<std::size_t>(peer)];
    const Transfer& put = out.puts[out.next];
    Queue q = queue(context_.rank(), peer);
    const std::uint64_t next = q.sent();
    if (next - q.done() >= q.length()) return false;
    const std::size_t length = std::min(shape_.bytes, put.slice.length - out.done);
    const Fragment fragment{context_.source(put) + out.done, length, put.slice.target + out.done};
    const int index = cell_with(context_.binding.region(put.from), fragment, copied);
    if (index < 0) return false;
    Cell& cell = cells_[static_cast<std::size_t>(index)];
    q.write(next, {static_cast<std::size_t>(index), out.done + length == put.slice.length});
    q.send(next + 1);
    cell.until[static_cast<std::size_t>(peer)] = next + 1;
    cell.is_fresh = false;
    out.done += length;
    return true;
}

// Sends one fragment to each peer in turn, so that the peers share the cells.
void ShmCells::send(Completions& completions)
{
    std::size_t copied = 0;
    bool moved = true;
    while (moved && copied < bytes_per_pass) {
        moved = false;
        for (int i = 1; i < context_.size(); i++) {
            const int peer = (context_.rank() + i) % context_.size();
            Outgoing& out = outgoing_[static_cast<std::size_t>(peer)];
            if (out.empty() || !send_fragment(peer, copied)) continue;
            moved = true;
            completions.moved_bytes();
            if (out.done < out.puts[out.next].slice.length) continue;
            const std::uint32_t op = out.puts[out.next++].op;
            out.done = 0;
            unsent_--;
            completions.complete(op, Status::ok);
        }
    }
}

Status ShmCells::receive(Completions& completions)
{
    std::size_t copied = 0;
    for (int i = 1; i < context_.size(); i++) {
        const int peer = (context_.rank() + i) % context_.size();
        const Status status = start_receiving(peer, copied);
        if (failed(status)) return status;
        if (end_receiving(peer)) completions.moved_bytes();
    }
    return Status::ok;
}

Status ShmCells::take_out(int peer, CellEntry entry, Work& work, std::size_t& copied)
{
    if (failed(failure_)) return failure_;
    const Region& into = context_.binding.receive;
    if (entry.cell() >= shape_.count) {
        log(HIER_LOG_ERROR, "node rank %d names a cell that does not exist", peer);
        return Status::transport_error;
    }
    std::byte* const cell = cell_at(peer, entry.cell());
    CellHeader header;
    std::memcpy(&header, cell, sizeof header);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // what follows reads the copy
    const char* const fault = fault_of(header, shape_.bytes, into.length);
    if (fault != nullptr) {
        log(HIER_LOG_ERROR, "node rank %d sent %s (%zu bytes)", peer, fault, into.length);
        return Status::mismatch;
    }
    // In a published call nobody announces displacements, so it is a home.
    std::size_t offset = header.offset;
    if (context_.binding.publish && !context_.find(header.offset, header.length, offset)) {
        log(HIER_LOG_ERROR, "node rank %d sent a fragment of no block", peer);
        return Status::mismatch;
    }
    work.is_last = entry.is_last();
    const Status status = keep(work.copy.start(*context_.segment, into, into.base + offset,
                                               content_of(cell), header.length));
    if (status == Status::ok) copied += header.length;
    return failed(status) ? status : Status::ok;
}

Status ShmCells::start_receiving(int peer, std::size_t& copied)
{
    Incoming& in = incoming_[static_cast<std::size_t>(peer)];
    const Queue q = queue(peer, context_.rank());
    const std::uint64_t end = q.arrived();
    if (!q.can_hold(in.started, end)) {
        log(HIER_LOG_ERROR, "node rank %d sent more fragments than its queue holds", peer);
        return Status::transport_error;
    }
    for (; in.started < end && copied < bytes_per_pass; in.started++) {
        const Status status = take_out(peer, q.read(in.started), in.of(in.started), copied);
        if (failed(status)) return status;
    }
    return Status::ok;
}

bool ShmCells::end_receiving(int peer)
{
    Incoming& in = incoming_[static_cast<std::size_t>(peer)];
    Queue q = queue(peer, context_.rank());
    const std::uint64_t first = q.freed();
    std::uint64_t next = first;
    for (; next < in.started && is_done(in.of(next).copy); next++) {
        if (failed(failure_)) break;
        in.arrived += in.of(next).is_last ? 1 : 0;
        q.free(next + 1);
    }
    return next > first;
}

}  // namespace hier
