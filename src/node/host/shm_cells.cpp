// SPDX-License-Identifier: BSD-3-Clause
#include "node/host/shm_cells.hpp"

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "gpu/runtime.hpp"

namespace hier {

ShmCells::ShmCells(const NodeContext& context, const Group& group, int numa, CellShape shape)
    : context_(context), shape_(shape), cells_(shape.count),
      outgoing_(static_cast<std::size_t>(group.size())),
      incoming_(static_cast<std::size_t>(group.size()))
{
    const auto ranks = static_cast<std::size_t>(group.size());
    memory_ = share(group, ranks * ranks * sizeof(Queue) + ranks * shape_.count * shape_.bytes);
    for (Cell& cell : cells_) cell.until.resize(ranks);
    place_pages(cell_data(context_.rank(), 0), shape_.count * shape_.bytes, numa);
}

ShmCells::~ShmCells()
{
    if (!registration_.release()) memory_.keep();
}

ShmCells::Queue& ShmCells::queue(int from, int to) const
{
    return reinterpret_cast<Queue*>(memory_.data())[from * context_.size() + to];
}

std::byte* ShmCells::cell_data(int owner, std::size_t cell) const
{
    const auto ranks = static_cast<std::size_t>(context_.size());
    return memory_.data() + ranks * ranks * sizeof(Queue) +
           (static_cast<std::size_t>(owner) * shape_.count + cell) * shape_.bytes;
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
        cell.filling.queue = nullptr;
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
        for (Work& work : in.work) is_idle = is_done(work) && is_idle;
    }
    return is_idle;
}

Status ShmCells::progress(Completions& completions)
{
    const Status status = receive(completions);
    if (unsent_ > 0) send(completions);
    return failed(failure_) ? failure_ : status;
}

gpu::Queue* ShmCells::engines_of(const Region& region)
{
    if (!is_of_device(region.memory) || failed(failure_)) return nullptr;
    const int device = region.memory.device;
    (void)registration_.ensure(device, memory_.data(), memory_.size());
    gpu::Queue* engines = gpu::queue(device);
    if (engines == nullptr) failure_ = Status::transport_error;
    return engines;
}

bool ShmCells::is_done(Work& work)
{
    if (work.queue == nullptr) return true;
    const Status status = work.queue->reached(work.ticket);
    if (status == Status::in_progress) return false;
    if (failed(status)) failure_ = status;
    work.queue = nullptr;
    return true;
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

int ShmCells::cell_with(const Region& region, const std::byte* content, std::size_t length,
                        std::size_t& copied)
{
    int free_cell = -1;
    for (std::size_t i = 0; i < cells_.size(); i++) {
        if (cells_[i].content == content && cells_[i].length == length)
            return is_done(cells_[i].filling) && !failed(failure_) ? static_cast<int>(i) : -1;
    }
    for (std::size_t i = 0; i < cells_.size() && free_cell < 0; i++) {
        if (is_free(cells_[i])) free_cell = static_cast<int>(i);
    }
    if (free_cell < 0) return -1;
    Cell& cell = cells_[static_cast<std::size_t>(free_cell)];
    std::byte* const data = cell_data(context_.rank(), static_cast<std::size_t>(free_cell));
    cell.content = content;
    cell.length = length;
    cell.is_fresh = true;
    std::fill(cell.until.begin(), cell.until.end(), 0);
    if (gpu::Queue* engines = engines_of(region)) {
        const gpu::Copy copy{data, content, length, gpu::Copy::inside};
        const Status status = engines->start({&copy, 1}, {}, cell.filling.ticket);
        if (failed(status)) {
            failure_ = status;
        } else {
            cell.filling.queue = engines;
        }
        return -1;
    }
    if (failed(failure_)) return -1;
    std::memcpy(data, content, length);
    copied += length;
    return free_cell;
}

bool ShmCells::send_fragment(int peer, std::size_t& copied)
{
    Outgoing& out = outgoing_[static_cast<std::size_t>(peer)];
    const Transfer& put = out.puts[out.next];
    Queue& q = queue(context_.rank(), peer);
    const std::uint64_t next = q.sent();
    if (next - q.done() == Queue::length) return false;
    const std::size_t length = std::min(shape_.bytes, put.slice.length - out.done);
    const int index = cell_with(context_.binding.region(put.from), context_.source(put) + out.done,
                                length, copied);
    if (index < 0) return false;
    Cell& cell = cells_[static_cast<std::size_t>(index)];
    const bool is_last = out.done + length == put.slice.length;
    q[next] = {put.slice.target + out.done, static_cast<std::uint32_t>(length),
               static_cast<std::uint16_t>(index), static_cast<std::uint16_t>(is_last)};
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

Status ShmCells::start_receiving(int peer, std::size_t& copied)
{
    const Region& into = context_.binding.receive;
    Incoming& in = incoming_[static_cast<std::size_t>(peer)];
    const Queue& q = queue(peer, context_.rank());
    const std::uint64_t end = q.arrived();
    for (; in.started < end && copied < bytes_per_pass; in.started++) {
        const Entry& entry = q[in.started];
        if (!fits(entry.offset, entry.length, into.length)) {
            log(HIER_LOG_ERROR,
                "node rank %d sent bytes beyond the end of the receive buffer (%zu bytes)", peer,
                into.length);
            return Status::mismatch;
        }
        const gpu::Copy copy{into.base + entry.offset, cell_data(peer, entry.cell), entry.length,
                             gpu::Copy::inside};
        if (gpu::Queue* engines = engines_of(into)) {
            Work& work = in.work[in.started % Queue::length];
            const Status status = engines->start({&copy, 1}, {}, work.ticket);
            if (failed(status)) return status;
            work.queue = engines;
        } else if (failed(failure_)) {
            return failure_;
        } else {
            std::memcpy(copy.to, copy.from, copy.bytes);
            copied += copy.bytes;
        }
    }
    return Status::ok;
}

bool ShmCells::end_receiving(int peer)
{
    Incoming& in = incoming_[static_cast<std::size_t>(peer)];
    Queue& q = queue(peer, context_.rank());
    const std::uint64_t first = q.freed();
    std::uint64_t next = first;
    for (; next < in.started && is_done(in.work[next % Queue::length]); next++) {
        if (failed(failure_)) break;
        in.arrived += q[next].is_last;
        q.free(next + 1);
    }
    return next > first;
}

}  // namespace hier
