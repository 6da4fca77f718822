// SPDX-License-Identifier: BSD-3-Clause
// A large block of a published call of two ranks. The owner publishes where its block lies, and the
// other rank copies it out of the owner's memory, by CMA:
//
//     owner                                        peer
//     publishes the block's address
//                                                  copies the block into its receive buffer
//                           <---- word: taken ---  (or: refused)
//     its put is done
//
// So the bytes go from one core's cache into the other's, and stay there for the rank that reads them
// next. A write by CMA would first take the lines of the receive buffer out of the peer's cache
// (path_choice.hpp).
//
// The kernel may refuse the owner's memory, such as pinned memory of a driver. Then the block goes
// through cells (shm_cells.hpp), in the same call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "node/host/shm_cells.hpp"
#include "node/node_path.hpp"

namespace hier {

class LentBlock {
public:
    // `pids`: of both ranks. The context and the cells outlive the object.
    LentBlock(const NodeContext& context, std::vector<int> pids, ShmCells& cells)
        : context_(context), pids_(std::move(pids)), cells_(cells)
    {
    }

    void begin();
    void end();
    // The put of this rank's block, which is published.
    void lend(const Transfer& put);
    // Has this rank lent its block in this call? Or has either of them?
    bool has_lent() const { return has_lent_; }
    bool is_used() const { return has_lent_ || answer_of(context_.rank()) != 0; }
    // Has either rank refused a block of this call? Or of any call so far?
    bool is_refused() const;
    bool was_refused() const { return was_refused_; }
    // Copies the next part of the peer's block, and adds its bytes to `copied`. ok: all of it is here.
    // in_progress: call again, or a rank has failed, or the block comes through cells.
    Status take(std::uint64_t address, std::byte* to, std::size_t bytes, std::size_t& copied);
    // Is this rank's block no longer needed? True as well if it has lent none.
    bool is_back() const;
    // Blocks of the peer that have come through cells.
    std::uint32_t arrived() const { return uses_cells_ ? cells_.arrived(peer()) : 0; }
    Status progress(Completions& completions);

private:
    // Bytes of a copy, which takes up to 2 us to start. Other calls of this process wait meanwhile.
    static constexpr std::size_t max_at_once = 4 << 20, max_in_background = 1 << 20;
    struct Told {
        std::uint64_t address;
        std::byte* to;
        std::size_t bytes;
        bool operator==(const Told&) const = default;
    };
    enum Answer : std::uint32_t { taken = 1, refused = 2 };  // the count of a Signal

    int peer() const { return 1 - context_.rank(); }
    // What `taker` has answered in this call; 0: nothing yet.
    std::uint32_t answer_of(int taker) const;
    void answer(Answer what);
    void use_cells();

    const NodeContext& context_;
    std::vector<int> pids_;
    ShmCells& cells_;
    Transfer put_{};  // of this rank
    bool has_lent_ = false;
    bool is_lent_ = false;    // and not done
    Told first_{};            // what the peer told of its block, before the first part
    std::size_t copied_ = 0;  // bytes of it
    bool uses_cells_ = false;
    bool was_refused_ = false;
};

}  // namespace hier
