// SPDX-License-Identifier: BSD-3-Clause
// A queue of at most `length` entries from one rank to another, in memory that both share. Entry i
// is at place i % length.
//
//              done (receiver)        sent (sender)
//   ... | i-2 | i-1 |  i  | i+1 | i+2 |  free ...
//
// Each of the two counts has one writer. A rank that sees a count grow also sees everything that
// the writer did before. The entries lie behind the sender's count. The receiver's count lies
// elsewhere (node_layout.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hier {

// Refers to the memory of a ring. Zeroed memory is an empty ring.
template <class Entry> class EntryRing {
public:
    // Bytes of the sender's count and the entries.
    static constexpr std::size_t sender_bytes(std::size_t length)
    {
        return sizeof(std::uint64_t) + length * sizeof(Entry);
    }

    // `length` is a power of two.
    EntryRing(std::byte* sender, std::byte* receiver, std::size_t length)
        : sent_(*reinterpret_cast<std::atomic<std::uint64_t>*>(sender)),
          done_(*reinterpret_cast<std::atomic<std::uint64_t>*>(receiver)),
          entries_(reinterpret_cast<Entry*>(sender + sizeof(std::uint64_t))), length_(length)
    {
    }
    std::size_t length() const { return length_; }

    // For the sender. It fills entries in [sent(), done() + length), and then sends them.
    std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }
    std::uint64_t done() const { return done_.load(std::memory_order_acquire); }
    void send(std::uint64_t end) { sent_.store(end, std::memory_order_release); }

    // For the receiver. It reads entries in [freed(), arrived()), and then frees them.
    std::uint64_t arrived() const { return sent_.load(std::memory_order_acquire); }
    std::uint64_t freed() const { return done_.load(std::memory_order_relaxed); }
    void free(std::uint64_t end) { done_.store(end, std::memory_order_release); }

    // Can there be so many entries, of which this rank has read the first `read`?
    static bool can_hold(std::uint64_t read, std::uint64_t freed, std::uint64_t arrived,
                         std::size_t length)
    {
        return freed <= read && read <= arrived && arrived - freed <= length;
    }
    bool can_hold(std::uint64_t read, std::uint64_t arrived) const
    {
        return can_hold(read, freed(), arrived, length_);
    }

    void write(std::uint64_t i, const Entry& entry) { entries_[i & (length_ - 1)] = entry; }
    // A copy, which stays what was checked. The sender could change its words at any time.
    Entry read(std::uint64_t i) const
    {
        const Entry entry = entries_[i & (length_ - 1)];
        std::atomic_signal_fence(std::memory_order_seq_cst);
        return entry;
    }

private:
    std::atomic<std::uint64_t>& sent_;
    std::atomic<std::uint64_t>& done_;
    Entry* entries_;
    std::size_t length_;
};

}  // namespace hier
