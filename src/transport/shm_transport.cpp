#include "transport/shm_transport.hpp"

#include <algorithm>
#include <cstring>

#include "log.hpp"

namespace hier {

ShmTransport::ShmTransport(NodeSegment segment_in, const Group& group)
    : NodeTransport(std::move(segment_in)), cells_(cells_per_rank),
      outgoing_(static_cast<std::size_t>(group.size())),
      arrived_(static_cast<std::size_t>(group.size()))
{
    const auto ranks = static_cast<std::size_t>(group.size());
    memory_ = share(group, ranks * ranks * sizeof(Queue) + ranks * cells_per_rank * cell_bytes);
    for (Cell& cell : cells_) cell.until.resize(ranks);
}

ShmTransport::Queue& ShmTransport::queue(int from, int to) const
{
    return reinterpret_cast<Queue*>(memory_.data())[from * segment().size() + to];
}

std::byte* ShmTransport::cell_data(int owner, std::size_t cell) const
{
    const auto ranks = static_cast<std::size_t>(segment().size());
    return memory_.data() + ranks * ranks * sizeof(Queue) +
           (static_cast<std::size_t>(owner) * cells_per_rank + cell) * cell_bytes;
}

Status ShmTransport::begin(const Binding& binding)
{
    std::fill(arrived_.begin(), arrived_.end(), 0);
    return NodeTransport::begin(binding);
}

// What a cell was filled from may change once the call is over.
void ShmTransport::end()
{
    for (Cell& cell : cells_) cell.content = nullptr;
    for (Outgoing& out : outgoing_) {
        out.puts.clear();
        out.next = out.done = 0;
    }
    unsent_ = 0;
}

Status ShmTransport::put(const Transfer& transfer)
{
    outgoing_[static_cast<std::size_t>(transfer.peer)].puts.push_back(transfer);
    unsent_++;
    return Status::in_progress;
}

std::uint32_t ShmTransport::arrived(int peer) { return arrived_[static_cast<std::size_t>(peer)]; }

bool ShmTransport::idle() const
{
    // nobody but this process touches the application's buffers, and only in progress()
    return true;
}

Status ShmTransport::progress(Completions& completions)
{
    const Status group_status = NodeTransport::progress(completions);
    if (failed(group_status)) return group_status;
    const Status status = receive();
    if (unsent_ > 0) send(completions);
    return status;
}

bool ShmTransport::is_free(const Cell& cell) const
{
    for (int peer = 0; peer < segment().size(); peer++) {
        const std::uint64_t until = cell.until[static_cast<std::size_t>(peer)];
        if (until > 0 && queue(segment().rank(), peer).head.load(std::memory_order_acquire) < until)
            return false;
    }
    return true;
}

int ShmTransport::cell_with(const std::byte* content, std::size_t length, std::size_t& copied)
{
    int free_cell = -1;
    for (std::size_t i = 0; i < cells_.size(); i++) {
        if (cells_[i].content == content && cells_[i].length == length) return static_cast<int>(i);
    }
    for (std::size_t i = 0; i < cells_.size() && free_cell < 0; i++) {
        if (is_free(cells_[i])) free_cell = static_cast<int>(i);
    }
    if (free_cell < 0) return -1;
    Cell& cell = cells_[static_cast<std::size_t>(free_cell)];
    std::memcpy(cell_data(segment().rank(), static_cast<std::size_t>(free_cell)), content, length);
    copied += length;
    cell.content = content;
    cell.length = length;
    std::fill(cell.until.begin(), cell.until.end(), 0);
    return free_cell;
}

bool ShmTransport::send_piece(int peer, std::size_t& copied)
{
    Outgoing& out = outgoing_[static_cast<std::size_t>(peer)];
    const Transfer& put = out.puts[out.next];
    Queue& q = queue(segment().rank(), peer);
    const std::uint64_t tail = q.tail.load(std::memory_order_relaxed);
    if (tail - q.head.load(std::memory_order_acquire) == queue_length) return false;
    const std::size_t length = std::min(cell_bytes, put.slice.length - out.done);
    const int cell = cell_with(source(put) + out.done, length, copied);
    if (cell < 0) return false;
    const bool is_last = out.done + length == put.slice.length;
    q.entries[tail % queue_length] = {
        put.slice.offset + out.done, static_cast<std::uint32_t>(length),
        static_cast<std::uint16_t>(cell), static_cast<std::uint16_t>(is_last)};
    q.tail.store(tail + 1, std::memory_order_release);
    cells_[static_cast<std::size_t>(cell)].until[static_cast<std::size_t>(peer)] = tail + 1;
    out.done += length;
    return true;
}

// One piece to each peer in turn, so that peers share the cells.
void ShmTransport::send(Completions& completions)
{
    std::size_t copied = 0;
    bool moved = true;
    while (moved && copied < bytes_per_pass) {
        moved = false;
        for (int i = 1; i < segment().size(); i++) {
            const int peer = (segment().rank() + i) % segment().size();
            Outgoing& out = outgoing_[static_cast<std::size_t>(peer)];
            if (out.empty() || !send_piece(peer, copied)) continue;
            moved = true;
            if (out.done < out.puts[out.next].slice.length) continue;
            const std::uint32_t op = out.puts[out.next++].op;
            out.done = 0;
            unsent_--;
            completions.complete(op, Status::ok);
        }
    }
}

Status ShmTransport::receive()
{
    const Region& into = binding().receive;
    std::size_t copied = 0;
    for (int i = 1; i < segment().size(); i++) {
        const int peer = (segment().rank() + i) % segment().size();
        Queue& q = queue(peer, segment().rank());
        std::uint64_t head = q.head.load(std::memory_order_relaxed);
        const std::uint64_t tail = q.tail.load(std::memory_order_acquire);
        for (; head < tail && copied < bytes_per_pass; head++) {
            const Entry& entry = q.entries[head % queue_length];
            if (entry.offset + entry.length > into.length) {
                log(HIER_LOG_ERROR,
                    "node rank %d sent bytes beyond the end of the receive buffer (%zu bytes)",
                    peer, into.length);
                return Status::mismatch;
            }
            std::memcpy(into.base + entry.offset, cell_data(peer, entry.cell), entry.length);
            copied += entry.length;
            arrived_[static_cast<std::size_t>(peer)] += entry.is_last;
            q.head.store(head + 1, std::memory_order_release);
        }
    }
    return Status::ok;
}

}  // namespace hier
