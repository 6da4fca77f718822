// SPDX-License-Identifier: BSD-3-Clause
// Chunks that go from one rank of a node to another, which passes them on.
//
// A receiver on a node knows only how many puts have come. Copies may end in another order than
// they began. So a rank lets a window of puts be on their way. A chunk is there when all later ones
// of its window have come too, or all chunks have.
//
//     window 2    puts   1 2 | 3 waits for 1 | 4 waits for 1, 2 | 5 waits for 2, 3
//                 takes  1 behind put 2, 2 behind put 3, ..., the last two behind the last put
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "coll/common/plan_writer.hpp"

namespace hier {

// The sender's side. In between nobody else puts to this peer.
class PutsInOrder {
public:
    static constexpr std::size_t no_window = SIZE_MAX;  // for a peer that does not pass them on

    PutsInOrder(PlanWriter& writer, int peer, std::size_t window)
        : writer_(writer), peer_(peer), window_(window)
    {
    }
    int peer() const { return peer_; }
    std::uint32_t put(Extent chunk, bool is_own, PlanWriter::Dependencies after = {})
    {
        puts_.push_back(writer_.put(Level::node, peer_, chunk, is_own, std::move(after)));
        const std::size_t n = puts_.size();
        if (n >= window_) hold_until(n + 1 - window_);
        return puts_.back();
    }
    // Later puts to the peer wait until all of these have come.
    void end()
    {
        if (!puts_.empty()) hold_until(puts_.size());
    }

private:
    // The first `count` puts. Those before the last window of them have come before that.
    void hold_until(std::size_t count)
    {
        const auto end = puts_.begin() + static_cast<std::ptrdiff_t>(count);
        writer_.hold_puts(Level::node, peer_,
                          {end - static_cast<std::ptrdiff_t>(std::min(count, window_)), end});
    }

    PlanWriter& writer_;
    int peer_;
    std::size_t window_;
    PlanWriter::Dependencies puts_;
};

// The receiver's side: takes `all` chunks, behind `before` other puts of the peer.
class ArrivalsInOrder {
public:
    ArrivalsInOrder(PlanWriter& writer, int peer, std::uint32_t before, std::uint32_t all,
                    std::size_t window)
        : writer_(writer), peer_(peer), before_(before), all_(all),
          later_(static_cast<std::uint32_t>(window) - 1)
    {
    }
    // The operation behind which the next chunk is there.
    std::uint32_t take()
    {
        const std::uint32_t awaited = std::min(++taken_ + later_, all_);
        if (awaited != awaited_)
            arrived_ = writer_.await_data(Level::node, peer_, before_ + awaited);
        awaited_ = awaited;
        return arrived_;
    }

private:
    PlanWriter& writer_;
    int peer_;
    std::uint32_t before_, all_, later_, taken_ = 0, awaited_ = 0, arrived_ = 0;
};

}  // namespace hier
