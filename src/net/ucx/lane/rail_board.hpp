// SPDX-License-Identifier: BSD-3-Clause
// The memory of a rank that its rail peers write to by RDMA.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "net/ucx/ucx_memory.hpp"

namespace hier {

// A receive buffer, as its owner describes it to a sender.
struct Announcement {
    static constexpr std::size_t max_key =
        480;  // bytes; 9-12 with TCP, more with several RDMA devices

    std::uint64_t address;
    std::uint64_t length;   // bytes
    std::uint64_t version;  // grows when anything here changes
    std::uint64_t key_bytes;
    std::array<std::byte, max_key> key;
};

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
