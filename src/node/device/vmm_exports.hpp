// SPDX-License-Identifier: BSD-3-Clause
// The segments of this process that its peers may map, and which peers were told of which.
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

    // Tells all peers of the segments that the region lies in, unless they have been told. False: not
    // now (a peer's queue is full), or never (it is other memory, or cannot be exported).
    bool share(const Region& region, std::span<const NodeSocket::Address> peers,
               std::uint64_t& digest);
    // Tells of some that the application has unmapped since, so that their memory comes free.
    void look_after();
    // The peer cannot use what it was told of: it is told anew, but not again and again.
    void forget(std::uint64_t process);

private:
    struct Export {
        gpu::VmmSegment segment;
        int device;
        bool is_refused;                                    // cannot be exported
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
        std::uint64_t last = 0;  // at this share()
    };
    bool may_be_told(const NodeSocket::Address& peer);

    static constexpr int max_losses = 3;
    static constexpr std::uint64_t pardoned_after = 1000;  // share()s

    std::mutex mutex_;
    Exports exports_;
    const std::byte* looked_at_ = nullptr;
    std::uint64_t shares_ = 0;
    std::map<std::uint64_t, Losses> losses_;  // by process
    std::vector<gpu::VmmSegment> segments_;   // of the region
    MemoryNotices retired_{NodeSocket::What::unmapped};
};

}  // namespace hier
