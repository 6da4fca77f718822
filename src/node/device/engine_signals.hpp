// SPDX-License-Identifier: BSD-3-Clause
// The signals behind the puts of copy engines. The device stores them behind its copies, where it
// can. Otherwise the CPU stores each one when it sees that the copy is done.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "hier/gpu.hpp"
#include "node/node_path.hpp"

namespace hier {

class EngineSignals {
public:
    // `ranks`: of the node; 0: this rank signals to nobody.
    EngineSignals(const NodeContext& context, int ranks);

    void begin();
    // Can the device of the call store signals? Registers the segment with it at the first use.
    bool are_stored_by_device();
    // The words for the device: add() says that one more put goes to `peer` by this lane. There is
    // one word for each peer, with the count of all its puts.
    void clear_words() { words_.clear(); }
    void add(int peer, int lane);
    std::span<const gpu::Word> words() const { return words_; }
    // The CPU signals one more put to `peer`.
    void store(int peer);
    std::uint32_t arrived(int peer) const
    {
        const auto& signal = context_.segment->signal_by_device(context_.rank(), peer);
        return Signal::count(signal.load(std::memory_order_acquire), context_.binding.sequence);
    }

private:
    std::atomic<std::uint64_t>& word_to(int peer) const;
    std::uint64_t next_to(int peer);

    const NodeContext& context_;
    std::vector<std::uint32_t> delivered_;  // by peer, in this call
    std::vector<gpu::Word> words_;
};

}  // namespace hier
