// SPDX-License-Identifier: BSD-3-Clause
// The VMM segments of this process that peers may map, with the peers that have been told of each.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "hier/gpu.hpp"
#include "hier/transport.hpp"
#include "node/device/memory_notices.hpp"

namespace hier {

class VmmExports {
public:
    static VmmExports& instance();

    // Tells all peers of the segments that the region lies in, unless they know them. False: a
    // peer's socket is full, or the region lies in no segments, or a segment cannot be exported.
    bool share(const Region& region, std::span<const NodeSocket::Address> peers,
               std::uint64_t& digest);
    // Looks for segments that the application has unmapped, and tells the peers, so that the memory
    // comes free.
    void look_after();
    // A peer has missed a message. It is told everything again, but not too often.
    void forget(std::uint64_t process);

private:
    struct Export {
        gpu::VmmSegment segment;
        int device;
        bool is_refused;                                    // the runtime cannot export it
        std::map<std::uint64_t, NodeSocket::Address> told;  // by process
    };
    using Exports = std::map<const std::byte*, Export>;  // by base

    Export& find(const gpu::VmmSegment& segment, int device);
    bool tell(std::span<const gpu::VmmSegment> segments,
              std::span<const NodeSocket::Address> peers);
    bool tell(std::span<const gpu::VmmSegment> segments, const NodeSocket::Address& peer,
              std::vector<int>& descriptors);
    void retire(Exports::iterator at);

    struct Losses {
        int count = 0;
        std::uint64_t last = 0;  // shares_ at the last loss
    };
    bool may_be_told(const NodeSocket::Address& peer);

    static constexpr int max_losses = 3;
    static constexpr std::uint64_t pardoned_after = 1000;  // calls of share()

    std::mutex mutex_;
    Exports exports_;
    const std::byte* looked_at_ = nullptr;
    std::uint64_t shares_ = 0;
    std::map<std::uint64_t, Losses> losses_;  // by process
    std::vector<gpu::VmmSegment> segments_;   // of the region in share()
    MemoryNotices retired_{NodeSocket::What::unmapped};
};

}  // namespace hier
