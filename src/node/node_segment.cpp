// SPDX-License-Identifier: BSD-3-Clause
#include "node/node_segment.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "topology/discovery.hpp"

namespace hier {
namespace {

SharedMemory share(const Group& group, std::size_t bytes, SharedMemory (*create)(std::size_t))
{
    SharedMemory memory;
    group.agree("creating the node's shared memory", [&] {
        if (group.rank() == 0) memory = create(bytes);
    });
    const auto addresses = group.collect(memory.address());
    group.agree("mapping the node's shared memory", [&] {
        if (group.rank() != 0) memory = SharedMemory::open(addresses[0], bytes);
    });
    memory.withdraw();
    return memory;
}

}  // namespace

SharedMemory share(const Group& group, std::size_t bytes)
{
    try {
        return share(group, bytes, SharedMemory::create_anonymous);
    } catch (const SetupError& e) {  // on all ranks
        log(HIER_LOG_INFO, "%s: trying /dev/shm", e.what());
    }
    return share(group, bytes, SharedMemory::create_named);
}

// The segment's pages are on the NUMA node of the rank that made it. A page can move if only one
// process has mapped it. The writes below map the pages here, and no other rank touches them before
// their use.
void place_pages(void* zeros, std::size_t bytes, int numa)
{
    if (numa < 0) return;
    constexpr std::size_t page = 4096;  // the smallest size
    auto* const memory = static_cast<volatile std::byte*>(zeros);
    for (std::size_t i = 0; i < bytes; i += page) memory[i] = {};
    (void)place_memory(zeros, bytes, numa);
}

// No constructor has to run in fresh shared memory. It is zero, which is the first value of every
// word.
NodeSegment::NodeSegment(const Group& group, std::size_t more)
    : rank_(group.rank()), size_(group.size()), memory_(share(group, own_bytes(size_) + more))
{
}

std::size_t NodeSegment::own_bytes(int ranks)
{
    const auto count = static_cast<std::size_t>(ranks);
    return cache_line + count * sizeof(NodeSlot) + count * count * sizeof(NodeFlag);
}

NodeSlot& NodeSegment::slot(int rank) const
{
    return reinterpret_cast<NodeSlot*>(memory_.data() + cache_line)[rank];
}

NodeFlag& NodeSegment::flag(int receiver, int sender) const
{
    const std::size_t at = cache_line + static_cast<std::size_t>(size_) * sizeof(NodeSlot);
    return reinterpret_cast<NodeFlag*>(memory_.data() + at)[receiver * size_ + sender];
}

}  // namespace hier
