// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/engine_signals.hpp"

#include <algorithm>

namespace hier {

EngineSignals::EngineSignals(const NodeContext& context, int ranks)
    : context_(context), delivered_(static_cast<std::size_t>(ranks))
{
}

void EngineSignals::begin() { std::fill(delivered_.begin(), delivered_.end(), 0); }

bool EngineSignals::are_stored_by_device()
{
    if (!context_.queue->stores_words()) return false;
    return context_.segment->register_with(context_.device);
}

std::atomic<std::uint64_t>& EngineSignals::word_to(int peer) const
{
    return context_.segment->signal_by_device(peer, context_.rank());
}

std::uint64_t EngineSignals::next_to(int peer)
{
    return Signal::encode(context_.binding.sequence, ++delivered_[static_cast<std::size_t>(peer)]);
}

void EngineSignals::add(int peer, int lane)
{
    const auto at = &word_to(peer);
    const auto known =
        std::find_if(words_.begin(), words_.end(), [&](const gpu::Word& w) { return w.at == at; });
    if (known == words_.end()) {
        words_.push_back({at, next_to(peer), lane});
    } else {
        known->value = next_to(peer);
    }
}

void EngineSignals::store(int peer)
{
    word_to(peer).store(next_to(peer), std::memory_order_release);
}

}  // namespace hier
