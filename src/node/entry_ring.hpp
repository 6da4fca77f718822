// SPDX-License-Identifier: BSD-3-Clause
// A queue of at most N entries from one rank to another, in memory that both share. Entry i is at
// place i % N.
//
//              done (receiver)        sent (sender)
//   ... | i-2 | i-1 |  i  | i+1 | i+2 |  free ...
//
// Each of the two counts has one writer. A rank that sees a count grow also sees everything that
// the writer did before.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "node/node_segment.hpp"

namespace hier {

// Zeroed memory is an empty ring.
template <class Entry, std::size_t N> class alignas(cache_line) EntryRing {
public:
    static constexpr std::size_t length = N;

    // For the sender. It fills entries in [sent(), done() + length), and then sends them.
    std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }
    std::uint64_t done() const { return done_.load(std::memory_order_acquire); }
    void send(std::uint64_t end) { sent_.store(end, std::memory_order_release); }

    // For the receiver. It reads entries in [freed(), arrived()), and then frees them.
    std::uint64_t arrived() const { return sent_.load(std::memory_order_acquire); }
    std::uint64_t freed() const { return done_.load(std::memory_order_relaxed); }
    void free(std::uint64_t end) { done_.store(end, std::memory_order_release); }

    Entry& operator[](std::uint64_t i) { return entries_[i % N]; }
    const Entry& operator[](std::uint64_t i) const { return entries_[i % N]; }

private:
    std::atomic<std::uint64_t> sent_;
    alignas(cache_line) std::atomic<std::uint64_t> done_;
    alignas(cache_line) std::array<Entry, N> entries_;
};

}  // namespace hier
