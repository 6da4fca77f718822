// Allocations of this process that its peers map as a whole (peer_mappings.hpp): who has been told of
// which. Memory that the application frees comes free only when nobody has it mapped, and only its
// owner knows that it was freed.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "transport/memory_notices.hpp"
#include "transport/peer_mappings.hpp"

namespace hier {

class ExportedAllocations {
public:
    static ExportedAllocations& instance();

    void note(const ExportedMemory& memory, int device,
              std::span<const PieceSocket::Address> peers);
    // Looks at some of them, and tells those who have mapped what is no more, once that is worth it:
    // to close a mapping is to wait for the device's kernels.
    void look_after();

    static constexpr std::uint64_t worth_telling = 256 << 20;  // bytes
    // Peers keep no more mappings than that (PeerMappings::most).
    static constexpr std::size_t most_freed = PeerMappings::most;

private:
    struct Export {
        PieceSocket::Entry memory;
        int device;
        std::map<std::uint64_t, PieceSocket::Address> told;  // by process
    };
    using Exports = std::map<std::uint64_t, Export>;  // by base

    Exports::iterator forget(Exports::iterator at);
    void tell_of_freed();

    std::mutex mutex_;
    Exports exports_;
    std::uint64_t looked_at_ = 0;
    std::vector<Export> freed_;  // of which nobody has been told
    std::uint64_t freed_bytes_ = 0;
    MemoryNotices notices_{PieceSocket::What::freed};
};

}  // namespace hier
