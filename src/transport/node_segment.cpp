#include "transport/node_segment.hpp"

#include <array>
#include <cstdio>

namespace hier {

SharedMemory share(const Group& group, std::size_t bytes)
{
    SharedMemory memory;
    std::array<char, 64> name{};
    group.agree("creating the node's shared memory", [&] {
        if (group.rank() != 0) return;
        memory = SharedMemory::create(bytes);
        std::snprintf(name.data(), name.size(), "%s", memory.name().c_str());
    });
    const auto names = group.allgather(name);
    group.agree("mapping the node's shared memory", [&] {
        if (group.rank() != 0) memory = SharedMemory::open(names[0].data(), bytes);
    });
    memory.unlink();
    return memory;
}

// Fresh shared memory is zero, which is the first value of every word: no constructor has to run in
// it.
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
