// SPDX-License-Identifier: BSD-3-Clause
// The memory that the ranks of a node share. Its words say which ranks are ready, how much has
// arrived, and whether the team has failed.
//
//   failure | slot of rank 0, 1, ...  | flags of receiver 0: from 0, 1, ... | of receiver 1 ...
//
// Every word has one writer, except `failure`. The words hold sequence numbers. They grow and are
// never reset.
#pragma once

#include <atomic>
#include <cstdint>

#include "node/device/peer_mappings.hpp"
#include "node/shared_memory.hpp"
#include "team/group.hpp"

namespace hier {

inline constexpr std::size_t cache_line = 64;

// How the others may write into a rank's receive buffer.
enum class WritePath : std::uint64_t {
    by_cpu,           // process_vm_writev to the buffer's address
    by_cells,         // only through cells of shared memory
    by_device,        // by copy engines, or through cells
    by_segments,      // the same, into VMM segments (peer_vmm_segments.hpp)
    by_device_cells,  // by copy engines into cells of device memory, or through cells
};

// Do the others write into the receive buffer itself?
constexpr bool is_direct(WritePath path)
{
    return path == WritePath::by_cpu || path == WritePath::by_device ||
           path == WritePath::by_segments;
}

// A rank publishes in its slot where its receive buffer of call `ready` is.
struct alignas(cache_line) NodeSlot {
    std::atomic<std::uint64_t> ready;
    std::atomic<std::uint64_t> entered;    // the rank is in this call, and has ended the one before
    std::atomic<std::uint64_t> heartbeat;  // a Signal
    std::atomic<std::uint64_t> stopped;    // not 0: has failed, and writes into no buffer any more
    std::uint64_t address;
    std::uint64_t length;
    WritePath path;
    ExportedMemory memory;  // for by_device the buffer's allocation; for by_device_cells the cells
    std::uint64_t vmm_digest;  // for by_segments; a VmmDigest
};

// Signals of a sender to a receiver. The CPU and the device have a count each.
struct alignas(cache_line) NodeFlag {
    std::atomic<std::uint64_t> by_cpu;
    std::atomic<std::uint64_t> by_device;
};

class NodeSegment {
public:
    // Collective over the node's group. Throws on all its ranks or on none. `more`: bytes of zeros
    // for the other things that the ranks share.
    explicit NodeSegment(const Group& group, std::size_t more = 0);

    int rank() const { return rank_; }
    int size() const { return size_; }
    std::atomic<int>& failure() const
    {
        return *reinterpret_cast<std::atomic<int>*>(memory_.data());
    }
    NodeSlot& slot(int rank) const;
    NodeFlag& flag(int receiver, int sender) const;
    std::byte* more() const { return memory_.data() + own_bytes(size_); }
    const SharedMemory& memory() const { return memory_; }
    void keep() { memory_.keep(); }

private:
    static std::size_t own_bytes(int ranks);

    int rank_;
    int size_;
    SharedMemory memory_;
};

// Collective. Group rank 0 creates the memory, and all ranks map it.
SharedMemory share(const Group& group, std::size_t bytes);

// Moves shared memory, which this rank will fill and which is zero, to a NUMA node. -1: does
// nothing.
void place_pages(void* zeros, std::size_t bytes, int numa);

}  // namespace hier
