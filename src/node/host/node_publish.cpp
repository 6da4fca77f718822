// SPDX-License-Identifier: BSD-3-Clause
#include "node/host/node_publish.hpp"

#include <algorithm>
#include <cstring>

#include "base/log.hpp"

namespace hier {

NodePublish::NodePublish(const NodeContext& context)
    : context_(context), rank_(context.rank()), half_bytes_(context.segment->layout().half),
      space_(half_bytes_ - cache_line), incoming_(index(context.size()))
{
    const CellShape cells = context.segment->layout().cells;
    first_half_ = cells.count * NodeLayout::cell_stride(cells.bytes);
}

Status NodePublish::begin()
{
    written_ = 0;
    blocks_ = 0;
    std::fill(incoming_.begin(), incoming_.end(), Reader{});
    return Status::ok;
}

Status NodePublish::put(const Transfer& transfer)
{
    const Slice slice = transfer.slice;
    const Binding& binding = context_.binding;
    Half& to = half(rank_);
    const std::size_t next = after(written_, slice.length);
    if (slice.length > space_ || next > space_) {
        log(HIER_LOG_ERROR,
            "no room for a block of %zu bytes behind %zu others, in a published call", slice.length,
            written_);
        return Status::bad_argument;
    }
    const Block block{slice.target, slice.length};
    std::byte* const at = blocks_of(to) + written_;
    std::memcpy(at, &block, sizeof block);
    std::memcpy(at + sizeof block, context_.source(transfer), slice.length);
    if (blocks_ == 0) to.total = binding.total;
    written_ = next;
    to.signal.store(Signal::encode(binding.sequence, ++blocks_), std::memory_order_release);
    return Status::ok;
}

Status NodePublish::entered(int peer) const
{
    const Half& from = half(peer);
    const Binding& binding = context_.binding;
    if (Signal::sequence(from.signal.load(std::memory_order_acquire)) < binding.sequence)
        return Status::in_progress;
    if (from.total == binding.total) return Status::ok;
    log(HIER_LOG_ERROR,
        "ranks disagree on the size of a call: %zu bytes in all here, %zu at node rank %d",
        binding.total, static_cast<std::size_t>(from.total), peer);
    return Status::mismatch;
}

Status NodePublish::copy_out(int peer, Half& from, std::uint32_t blocks, std::size_t& copied)
{
    Reader& in = incoming_[index(peer)];
    while (in.blocks < blocks && copied < bytes_per_pass) {
        const Region& into = context_.binding.receive;
        Block block{};
        if (fits(in.at, sizeof block, space_))
            std::memcpy(&block, blocks_of(from) + in.at, sizeof block);
        std::atomic_signal_fence(std::memory_order_seq_cst);  // what follows reads the copy
        const char* const fault =
            fault_of_block(in.at + sizeof block, block.offset, block.length, space_, into.length);
        if (fault != nullptr) {
            if (entered(peer) != Status::mismatch)  // else the cause has been logged
                log(HIER_LOG_ERROR, "node rank %d published %s", peer, fault);
            return Status::mismatch;
        }
        std::memcpy(into.base + block.offset, blocks_of(from) + in.at + sizeof block, block.length);
        copied += block.length;
        in.at = after(in.at, block.length);
        in.blocks++;
    }
    return Status::ok;
}

Status NodePublish::progress(Completions&)
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
    return status;
}

}  // namespace hier
