// SPDX-License-Identifier: BSD-3-Clause
#include "node/host/node_publish.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/cache.hpp"
#include "base/disagreement.hpp"
#include "base/log.hpp"

namespace hier {

NodePublish::NodePublish(const NodeContext& context, std::size_t max_copied,
                         std::unique_ptr<LentBlock> lent)
    : context_(context), rank_(context.rank()), space_(context.segment->layout().half - cache_line),
      max_copied_(max_copied), lent_(std::move(lent)), halves_(index(context.size())),
      incoming_(index(context.size()))
{
    const NodeLayout& layout = context.segment->layout();
    const std::size_t cells = layout.cells.count * NodeLayout::cell_stride(layout.cells.bytes);
    for (int rank = 0; rank < context.size(); rank++) {
        std::byte* const first = context.segment->area(rank) + cells;
        halves_[index(rank)] = {reinterpret_cast<Half*>(first),
                                reinterpret_cast<Half*>(first + layout.half)};
    }
}

Status NodePublish::begin()
{
    written_ = 0;
    blocks_ = 0;
    std::fill(incoming_.begin(), incoming_.end(), Reader{});
    if (lent_) lent_->begin();
    return Status::ok;
}

Status NodePublish::put(const Transfer& transfer)
{
    return put(transfer.slice, context_.source(transfer));
}

// A call that begins anew has shown its block already, and others may be reading it.
bool NodePublish::is_shown() const
{
    const std::uint64_t shown = half(rank_).signal.load(std::memory_order_relaxed);
    return Signal::count(shown, context_.binding.sequence) > blocks_;
}

Status NodePublish::lend(const Transfer& transfer)
{
    if (blocks_ > 0) {
        log(HIER_LOG_ERROR, "a rank lends one block in a call, and this would be another one");
        return Status::bad_argument;
    }
    if (is_shown()) {
        blocks_++;
    } else {
        const auto address = reinterpret_cast<std::uint64_t>(context_.source(transfer));
        std::memcpy(add(transfer.slice), &address, sizeof address);
        show();
    }
    lent_->lend(transfer);
    return Status::in_progress;
}

Status NodePublish::put(const Slice& slice, const std::byte* from)
{
    if (is_shown()) {
        written_ = after(written_, slice.length);
        blocks_++;
        return Status::ok;
    }
    if (!has_room(slice)) return Status::bad_argument;
    // The others look at the line of the signal all the time, and each look takes the line away from this rank's core.
    // So what is in that line comes last, at once.
    const std::size_t first = std::min(slice.length, in_first_line);
    std::byte* const to = blocks_of(half(rank_)) + written_ + sizeof(Block);
    if (slice.length > first) std::memcpy(to + first, from + first, slice.length - first);
    std::memcpy(add(slice), from, first);
    show();
    return Status::ok;
}

Status NodePublish::place(const Slice& slice, std::byte*& bytes)
{
    if (!has_room(slice)) return Status::bad_argument;
    bytes = add(slice);
    return Status::ok;
}

bool NodePublish::has_room(const Slice& slice) const
{
    if (blocks_ > 0 && lent_ && lent_->has_lent()) {
        log(HIER_LOG_ERROR, "a rank that lends a block has no other one in the call");
        return false;
    }
    if (slice.length <= space_ && after(written_, slice.length) <= space_) return true;
    log(HIER_LOG_ERROR, "no room for a block of %zu bytes behind %zu others, in a published call",
        slice.length, written_);
    return false;
}

// Writes the header of the next block. Returns where its bytes go.
std::byte* NodePublish::add(const Slice& slice)
{
    Half& to = half(rank_);
    const Block block{slice.target, slice.length};
    std::byte* const at = blocks_of(to) + written_;
    std::memcpy(at, &block, sizeof block);
    if (blocks_ == 0) to.shape = context_.binding.shape();
    written_ = after(written_, stored(slice.length));
    return at + sizeof block;
}

void NodePublish::show()
{
    half(rank_).signal.store(Signal::encode(context_.binding.sequence, ++blocks_),
                             std::memory_order_release);
}

Status NodePublish::entered(int peer) const
{
    const Half& from = half(peer);
    const Binding& binding = context_.binding;
    if (Signal::sequence(from.signal.load(std::memory_order_acquire)) < binding.sequence)
        return Status::in_progress;
    if (from.shape == binding.shape()) return Status::ok;
    return refuse_shape(binding.shape(), from.shape, "node", peer);
}

Status NodePublish::read(int peer, Half& from, std::size_t at, Arrived& block) const
{
    Block told{};
    if (fits(at, sizeof told, space_)) std::memcpy(&told, blocks_of(from) + at, sizeof told);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // what follows reads the copy
    std::size_t place = 0;
    const bool is_found = context_.find(told.offset, told.length, place);
    const std::size_t to = is_found ? place : SIZE_MAX;
    const char* const fault = fault_of_block(at + sizeof told, stored(told.length), to, told.length,
                                             space_, context_.binding.receive.length);
    if (fault != nullptr) {
        if (entered(peer) != Status::mismatch)  // else the cause has been logged
            log(HIER_LOG_ERROR, "node rank %d published %s", peer, fault);
        return Status::mismatch;
    }
    block = {blocks_of(from) + at + sizeof told, to, told.length};
    return Status::ok;
}

Status NodePublish::first(int rank, Arrived& block) const
{
    Half& from = half(rank);
    const std::uint64_t word = from.signal.load(std::memory_order_acquire);
    if (Signal::count(word, context_.binding.sequence) == 0) return Status::in_progress;
    return read(rank, from, 0, block);
}

Status NodePublish::copy_out(int peer, Half& from, std::uint32_t blocks, std::size_t& copied)
{
    Reader& in = incoming_[index(peer)];
    if (blocks == in.blocks) return Status::ok;
    if (const std::uint64_t shape = context_.binding.shape(); in.blocks == 0 && from.shape != shape)
        return refuse_shape(shape, from.shape, "node", peer);
    while (in.blocks < blocks && copied < bytes_per_pass) {
        Arrived block{};
        const Status status = read(peer, from, in.at, block);
        if (failed(status)) return status;
        const Status copy = copy_block(block, in, copied);
        if (copy != Status::ok) return failed(copy) ? copy : Status::ok;
        in.at = after(in.at, stored(block.length));
        in.blocks++;
    }
    return Status::ok;
}

// in_progress: a part of it is here, or copy engines are at it.
Status NodePublish::copy_block(const Arrived& block, Reader& in, std::size_t& copied)
{
    std::byte* const to = context_.binding.receive.base + block.offset;
    if (lends(block.length)) {
        std::uint64_t address = 0;
        std::memcpy(&address, block.bytes, sizeof address);
        return lent_->take(address, to, block.length, copied);
    }
    const Status status =
        keep_hung(in.is_copying ? in.copy.look()
                                : in.copy.start(*context_.segment, context_.binding.receive, to,
                                                block.bytes, block.length));
    in.is_copying = status == Status::in_progress;
    if (status == Status::ok) copied += block.length;
    return status;
}

// What is wrong with a call is for progress() to say.
bool NodePublish::gather(unsigned looks, unsigned looks_at_lent)
{
    const int size = static_cast<int>(incoming_.size());
    const std::uint64_t sequence = context_.binding.sequence, shape = context_.binding.shape();
    int missing = size - 1;
    for (unsigned seen = 0; seen < looks && missing > 0; seen += static_cast<unsigned>(size)) {
        for (int i = 1; i < size; i++) {
            const int peer = (rank_ + i) % size;
            Half& from = half(peer);
            if (incoming_[index(peer)].blocks > 0) continue;
            const std::uint64_t word = from.signal.load(std::memory_order_acquire);
            if (Signal::count(word, sequence) == 0) {
                ask_for_blocks(from);
                continue;
            }
            std::size_t copied = 0;
            if (from.shape != shape || failed(copy_out(peer, from, 1, copied))) return false;
            // Only a block that is lent comes in parts, or not at all.
            if (incoming_[index(peer)].blocks > 0)
                missing--;
            else if (lent_->is_refused())
                return false;
        }
    }
    if (missing > 0) return false;
    for (unsigned i = 0; has_to_take(); i++)
        if (i == looks_at_lent || lent_->is_refused()) return false;
    ask_for_next_half();
    return true;
}

// For a block as long as this rank's own. The line of the signal comes anyway.
void NodePublish::ask_for_blocks(const Half& half) const
{
    const std::byte* const at = reinterpret_cast<const std::byte*>(&half);
    for (std::size_t i = cache_line; i < bytes_ahead(); i += cache_line) prefetch_to_read(at + i);
}

// For a block as long as in this call. All ranks have copied out what this half had before.
void NodePublish::ask_for_next_half() const
{
    std::byte* const at = reinterpret_cast<std::byte*>(&half(rank_, context_.binding.sequence + 1));
    for (std::size_t i = 0; i < bytes_ahead(); i += cache_line) prefetch_to_write(at + i);
}

Status NodePublish::keep_hung(Status status)
{
    has_hung_ = has_hung_ || status == Status::timed_out;
    return status;
}

bool NodePublish::idle()
{
    bool is_idle = true;
    for (Reader& in : incoming_)
        is_idle = keep_hung(in.copy.look()) != Status::in_progress && is_idle;
    return is_idle && !has_hung();
}

Status NodePublish::progress(Completions& completions)
{
    if (context_.raised) return Status::ok;
    std::size_t copied = 0;
    Status status = Status::ok;
    const int size = static_cast<int>(incoming_.size());
    for (int i = 1; i < size && status == Status::ok; i++) {
        const int peer = (rank_ + i) % size;
        Half& from = half(peer);
        const std::uint64_t word = from.signal.load(std::memory_order_acquire);
        status = copy_out(peer, from, Signal::count(word, context_.binding.sequence), copied);
    }
    if (lent_ && status == Status::ok) status = lent_->progress(completions);
    if (lent_ && copied > 0) completions.moved_bytes();
    return status;
}

}  // namespace hier
