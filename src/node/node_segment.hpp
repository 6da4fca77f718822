// SPDX-License-Identifier: BSD-3-Clause
// The memory that the ranks of a node share (node_layout.hpp). Its words say which ranks are ready,
// how much has arrived, and whether the team has failed.
//
// Every word has one writer, except `failure`. The words hold sequence numbers. They grow and are
// never reset.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "memory/registration.hpp"
#include "node/entry_ring.hpp"
#include "node/node_layout.hpp"
#include "node/peer_words.hpp"
#include "node/shared_memory.hpp"

namespace hier {

// A rank publishes in its slot where its receive buffer of call `ready` is.
struct alignas(cache_line) NodeSlot {
    std::atomic<std::uint64_t> ready;
    std::atomic<std::uint64_t> entered;    // the rank is in this call, and has ended the one before
    std::array<std::uint64_t, 2> shapes;   // of the call that it has entered, by its number % 2
    std::atomic<std::uint64_t> heartbeat;  // a Signal
    std::atomic<std::uint64_t> stopped;    // not 0: has failed, and writes into no buffer any more
    // By Binding::sequence % 2: a rank may be a call ahead of one that puts nothing to it.
    std::array<NodeOffer, 2> offers;
    std::atomic<std::uint64_t> exchange;  // a Signal of KernelExchange
    ExchangeOffer exchange_offer;
};

// Tells the others of the node that this rank is in a call of this shape.
inline void enter_call(NodeSlot& slot, std::uint64_t sequence, std::uint64_t shape)
{
    slot.shapes[sequence % 2] = shape;
    slot.entered.store(sequence, std::memory_order_release);
}

class NodeSegment {
public:
    // `memory` is of this layout, mapped by all ranks of the node.
    NodeSegment(int rank, const NodeLayout& layout, SharedMemory memory);
    ~NodeSegment();
    NodeSegment(const NodeSegment&) = delete;
    NodeSegment& operator=(const NodeSegment&) = delete;

    int rank() const { return rank_; }
    int size() const { return layout_.ranks; }
    const NodeLayout& layout() const { return layout_; }
    std::atomic<int>& failure() const
    {
        return *reinterpret_cast<std::atomic<int>*>(memory_.data());
    }
    NodeSlot& slot(int rank) const
    {
        return reinterpret_cast<NodeSlot*>(memory_.data() + layout_.slots)[rank];
    }
    // Signals of a sender to a receiver. The CPU and the device have a count each. The device's is
    // there if ranks of the node use devices.
    std::atomic<std::uint64_t>& signal_by_cpu(int receiver, int sender) const
    {
        return *word_at(layout_.signals + pair(receiver, sender) * layout_.signal_stride);
    }
    std::atomic<std::uint64_t>& signal_by_device(int receiver, int sender) const
    {
        return *(&signal_by_cpu(receiver, sender) + 1);
    }
    template <class Entry>
    EntryRing<Entry> ring(const RingTable& rings, int sender, int receiver) const
    {
        return {memory_.data() + rings.sender_at + pair(receiver, sender) * rings.sender_stride,
                memory_.data() + rings.receiver_at + pair(sender, receiver) * rings.receiver_stride,
                rings.length};
    }
    // Where the blocks of a result begin in this rank's receive buffer, if its offer says that they are
    // displaced. Empty: there is no room for that.
    std::span<std::size_t> displacements(int rank) const
    {
        auto* const all = reinterpret_cast<std::size_t*>(memory_.data() + layout_.displacements);
        return {all + static_cast<std::size_t>(rank) * layout_.blocks, layout_.blocks};
    }
    std::byte* area(int rank) const
    {
        return memory_.data() + layout_.areas +
               static_cast<std::size_t>(rank) * layout_.area_stride;
    }
    // Moves the area of this rank to a NUMA node. No other rank has touched the area yet. -1: does
    // nothing.
    void place_area(int numa) const;
    // All ranks have mapped the memory.
    void withdraw() { memory_.withdraw(); }
    // Makes the memory known to a device's runtime, at the first call only. False: it is refused.
    bool register_with(int device)
    {
        return registration_.ensure(device, memory_.data(), memory_.size());
    }

private:
    std::size_t pair(int row, int column) const
    {
        return static_cast<std::size_t>(row) * static_cast<std::size_t>(layout_.ranks) +
               static_cast<std::size_t>(column);
    }
    std::atomic<std::uint64_t>* word_at(std::size_t at) const
    {
        return reinterpret_cast<std::atomic<std::uint64_t>*>(memory_.data() + at);
    }

    int rank_;
    NodeLayout layout_;
    SharedMemory memory_;
    Registration registration_;  // of memory_
};

}  // namespace hier
