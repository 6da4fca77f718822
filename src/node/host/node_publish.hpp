// SPDX-License-Identifier: BSD-3-Clause
// Blocks inside a node. A rank writes each block once, into memory that all other ranks read. The
// writer waits for no other rank. Of two ranks that reach each other by CMA, each lends its large block
// (lent_block.hpp): then the memory has the block's address in place of its bytes.
//
//   rank r    calls 1, 3, 5, ...   [signal | shape] [offset, length, bytes] [offset, length, bytes] ...
//             calls 2, 4, 6, ...   [signal | shape] [offset, length, bytes] ...
//
// Readers never acknowledge. A writer in call c has ended call c-1, so every rank of the node had
// entered that one and had ended call c-2: the half that c-2 used is free. Calls of another kind may
// lie in between, because in each of them a rank waits until all others of its node have entered.
//
// A block of up to 32 bytes comes in the cache line of its signal. Bytes copied on a node of G
// ranks: G*S in, G*(G-1)*S out.
//
// Source: the double-buffered flag-and-data segments of shared-memory collectives (Graham and
// Shipman, "MPI support for multi-core architectures: optimized shared memory collectives").
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "node/host/lent_block.hpp"
#include "node/host/shared_copy.hpp"
#include "node/node_path.hpp"

namespace hier {

class NodePublish final : public NodePath {
public:
    // A rank that publishes `blocks` of `bytes` in all in one call needs at most this much.
    static constexpr std::size_t space_for(std::size_t blocks, std::size_t bytes)
    {
        return bytes + blocks * (sizeof(Block) + alignment - 1);
    }

    // The segment has areas with two halves. Blocks of more than `max_copied` bytes are lent, one for each
    // rank; without `lent` none is.
    NodePublish(const NodeContext& context, std::size_t max_copied,
                std::unique_ptr<LentBlock> lent);

    // How much a rank may put in one call, in terms of space_for().
    std::size_t space() const { return space_; }

    Status begin() override;
    // Lets all other ranks read the slice. The put is done when this returns.
    Status put(const Transfer& transfer) override;
    Status put(const Slice& slice, const std::byte* from);
    bool lends(std::size_t bytes) const { return lent_ != nullptr && bytes > max_copied_; }
    // In the last call.
    bool has_lent() const { return lent_ != nullptr && lent_->is_used(); }
    // Has a block been refused that was lent? Then later ones may be, too.
    bool was_refused() const { return lent_ != nullptr && lent_->was_refused(); }
    // Does the peer still have to copy this rank's block?
    bool has_to_take() const { return lent_ != nullptr && !lent_->is_back(); }
    // A put of a block that is lent. The slice's source is where it lies. in_progress: `transfer.op` is completed
    // later.
    Status lend(const Transfer& transfer);
    // The same in two halves. Sets `bytes` to where the bytes of the slice go; show() follows when
    // they are there.
    Status place(const Slice& slice, std::byte*& bytes);
    void show();
    // Copies out the first block of each peer, if all come within about so many looks at single peers. Then waits for
    // so many other looks until a block that is lent is back.
    bool gather(unsigned looks, unsigned looks_at_lent = 0);
    // Has the peer published a block in this call? mismatch: its buffer has another size.
    Status entered(int peer) const;
    std::uint32_t arrived(int peer) const override
    {
        return incoming_[index(peer)].blocks + (lent_ ? lent_->arrived() : 0);
    }
    struct Arrived {
        const std::byte* bytes;
        std::size_t offset, length;  // in this rank's receive buffer; it has been checked
    };
    // The first block of a rank in this call. in_progress: it has not arrived.
    Status first(int rank, Arrived& block) const;
    // Copies blocks out that have arrived, up to a limit in one pass.
    Status progress(Completions& completions) override;
    bool idle() override;
    // Has a copy exceeded its bound? It may go on for ever.
    bool has_hung() const { return has_hung_; }
    void end() override
    {
        if (lent_) lent_->end();
    }

private:
    static constexpr std::size_t alignment = 8;
    static constexpr std::size_t bytes_per_pass = 256 << 10;

    struct Block {
        std::uint64_t offset;  // in the result, at home
        std::uint64_t length;
    };
    // The blocks follow.
    struct Half {
        std::atomic<std::uint64_t> signal;  // a Signal, with the number of blocks
        std::uint64_t shape;                // CallShape
    };
    static constexpr std::size_t in_first_line = cache_line - sizeof(Half) - sizeof(Block);
    // 20 lines instead of 5 made 1 KiB slower (1.1 us instead of 0.8, on 2 cores of a Xeon) and 4 KiB 4 % faster.
    static constexpr std::size_t max_ahead = 5 * cache_line;
    struct Reader {
        std::uint32_t blocks = 0;  // copied out in this call
        std::size_t at = 0;        // where the next block is
        bool is_copying = false;   // the next block, into device memory
        SharedCopy copy;
    };

    static std::size_t index(int i) { return static_cast<std::size_t>(i); }
    static std::size_t after(std::size_t at, std::size_t stored)
    {
        return (at + sizeof(Block) + stored + alignment - 1) / alignment * alignment;
    }
    // The bytes that a half has of a block.
    std::size_t stored(std::size_t length) const
    {
        return lends(length) ? sizeof(std::uint64_t) : length;
    }
    Half& half(int rank, std::uint64_t sequence) const
    {
        return *halves_[index(rank)][sequence % 2];
    }
    Half& half(int rank) const { return half(rank, context_.binding.sequence); }
    static std::byte* blocks_of(Half& half)
    {
        return reinterpret_cast<std::byte*>(&half) + sizeof(Half);
    }
    std::size_t bytes_ahead() const { return std::min(sizeof(Half) + written_, max_ahead); }
    void ask_for_blocks(const Half& half) const;
    void ask_for_next_half() const;
    bool is_shown() const;
    bool has_room(const Slice& slice) const;
    std::byte* add(const Slice& slice);
    // The block of `peer` whose header is at `at` in its half.
    Status read(int peer, Half& from, std::size_t at, Arrived& block) const;
    Status copy_out(int peer, Half& from, std::uint32_t blocks, std::size_t& copied);
    Status copy_block(const Arrived& block, Reader& in, std::size_t& copied);
    Status keep_hung(Status status);

    const NodeContext& context_;
    int rank_;
    std::size_t space_;
    std::size_t max_copied_;
    std::unique_ptr<LentBlock> lent_;
    std::vector<std::array<Half*, 2>> halves_;  // by rank
    std::size_t written_ = 0;
    std::uint32_t blocks_ = 0;  // ours, in this call
    bool has_hung_ = false;
    std::vector<Reader> incoming_;  // by peer
};

}  // namespace hier
