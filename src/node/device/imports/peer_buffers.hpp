// SPDX-License-Identifier: BSD-3-Clause
// The receive buffers of peers in device memory, mapped here for one call.
#pragma once

#include <vector>

#include "node/device/cells/device_cells.hpp"
#include "node/device/imports/peer_mappings.hpp"
#include "node/device/imports/peer_vmm_segments.hpp"
#include "node/node_path.hpp"

namespace hier {

class PeerBuffers {
public:
    PeerBuffers(const NodeContext& context, DeviceCells& cells, PeerTables tables);

    // How can the buffer of `peer` be written from here? Maps it if need be. The peer has
    // announced.
    WritePath reach(int peer);
    // Where the peer's receive buffer is mapped. Only for by_device and by_segments.
    std::byte* receive(int peer) const { return peers_[static_cast<std::size_t>(peer)].receive; }
    void end();

private:
    struct Peer {
        PeerMappings::Mapping* mapping = nullptr;
        PeerVmmSegments::Window* window = nullptr;
        std::byte* receive = nullptr;
    };
    Status map(int peer);

    const NodeContext& context_;
    DeviceCells& cells_;
    PeerTables tables_;
    std::vector<Peer> peers_;
};

}  // namespace hier
