// SPDX-License-Identifier: BSD-3-Clause
// The memory of a rank that its rail peers write to by RDMA.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "net/rail_words.hpp"
#include "net/ucx/ucx_memory.hpp"

namespace hier {

struct alignas(64) RailSlot {
    std::uint64_t arrivals;  // a Signal
    std::uint64_t ready;  // the sequence number of the collective that the peer has announced last
    std::uint64_t heartbeat;  // a Signal
    std::uint64_t goodbye;    // not 0: the peer writes here no more
    std::uint64_t stopped;    // not 0: after a failure, nor into any receive buffer
    std::uint64_t parts;      // of large puts, but their last ones; only grows
    Announcement announcement;
};

class RailBoard {
public:
    RailBoard() {}
    // One slot for each rank of the rail; registered. Throws SetupError.
    RailBoard(ucp_context_h context, std::size_t ranks);

    RailSlot& slot(std::size_t rank) { return slots_[1 + rank]; }
    std::uint64_t& failure() { return slots_[0].arrivals; }  // any peer writes it, once
    const UcxMemory& memory() const { return memory_; }

    // A word that a NIC or another thread writes.
    static std::uint64_t read(std::uint64_t& word)
    {
        return std::atomic_ref(word).load(std::memory_order_acquire);
    }

private:
    struct Unmap {
        std::size_t bytes;
        void operator()(RailSlot* slots) const;
    };
    // Pages with nothing else on them: a child of fork() may lack what is registered.
    std::unique_ptr<RailSlot[], Unmap> slots_{nullptr, Unmap{0}};
    UcxMemory memory_;
};

}  // namespace hier
