// SPDX-License-Identifier: BSD-3-Clause
#include "node/host/lent_block.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/log.hpp"
#include "node/host/process_memory.hpp"

namespace hier {

void LentBlock::begin()
{
    has_lent_ = is_lent_ = uses_cells_ = false;
    copied_ = 0;
}

void LentBlock::end()
{
    if (uses_cells_) cells_.end();
}

void LentBlock::lend(const Transfer& put)
{
    put_ = put;
    put_.peer = peer();
    has_lent_ = is_lent_ = true;
}

std::uint32_t LentBlock::answer_of(int taker) const
{
    const auto& word = context_.segment->signal_by_cpu(1 - taker, taker);
    return Signal::count(word.load(std::memory_order_acquire), context_.binding.sequence);
}

void LentBlock::answer(Answer what)
{
    context_.segment->signal_by_cpu(peer(), context_.rank())
        .store(Signal::encode(context_.binding.sequence, what), std::memory_order_release);
}

bool LentBlock::is_refused() const
{
    return answer_of(context_.rank()) == refused || (is_lent_ && answer_of(peer()) == refused);
}

bool LentBlock::is_back() const { return !is_lent_ || answer_of(peer()) == taken; }

// A call that begins anew may have answered already. After that the peer uses its block again.
Status LentBlock::take(std::uint64_t address, std::byte* to, std::size_t bytes, std::size_t& copied)
{
    const std::uint32_t given = answer_of(context_.rank());
    if (given == taken) return Status::ok;
    if (given == refused) return use_cells(), Status::in_progress;
    // A peer that has gone mad may tell something else in the middle.
    const Told told{address, to, bytes};
    if (copied_ > 0 && told != first_) {
        log(HIER_LOG_ERROR, "node rank %d has changed its block in the middle of a copy", peer());
        return Status::mismatch;
    }
    first_ = told;
    const int pid = pids_[static_cast<std::size_t>(peer())];
    const std::size_t most = context_.binding.in_background ? max_in_background : max_at_once;
    const std::size_t part = std::min(most, bytes - copied_);
    const int cause = read_memory(pid, to + copied_, address + copied_, part);
    if (cause != 0 && is_refusal(cause, pid)) {
        answer(refused);
        return use_cells(), Status::in_progress;
    }
    if (cause != 0) {
        log(HIER_LOG_ERROR, "process_vm_readv of %zu bytes from node rank %d (process %d): %s",
            part, peer(), pid, std::strerror(cause));
        return Status::transport_error;
    }
    copied_ += part;
    copied += part;
    // A rank that has failed may use its block again, so these may be other bytes. See NodeTransport::raise().
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (copied_ < bytes || context_.has_failed()) return Status::in_progress;
    answer(taken);
    return Status::ok;
}

void LentBlock::use_cells()
{
    was_refused_ = true;
    if (!uses_cells_ && !failed(cells_.begin())) uses_cells_ = true;
}

Status LentBlock::progress(Completions& completions)
{
    const std::uint32_t answered = is_lent_ ? answer_of(peer()) : 0;
    if (answered != 0) is_lent_ = false;
    if (answered == taken) completions.complete(put_.op, Status::ok);
    if (answered == refused) {
        use_cells();
        (void)cells_.put(put_);
    }
    return uses_cells_ ? cells_.progress(completions) : Status::ok;
}

}  // namespace hier
