// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/device/arrival_flush.hpp"

#include <algorithm>

namespace hier {

void ArrivalFlush::begin()
{
    for (auto* counts : {&landed_, &flushing_, &visible_})
        std::fill(counts->begin(), counts->end(), 0);
    state_ = State::idle;
}

std::uint32_t ArrivalFlush::visible(std::size_t peer)
{
    if (state_.load(std::memory_order_acquire) == State::done) {
        std::copy(flushing_.begin(), flushing_.end(), visible_.begin());
        state_.store(State::idle, std::memory_order_relaxed);
    }
    return visible_[peer];
}

void ArrivalFlush::start()
{
    std::copy(landed_.begin(), landed_.end(), flushing_.begin());
    state_.store(State::running, std::memory_order_relaxed);
}

}  // namespace hier
