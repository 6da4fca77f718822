// SPDX-License-Identifier: BSD-3-Clause
// Tells the others how they may write into this rank's receive buffer, where ranks use GPUs.
#pragma once

#include <vector>

#include "node/device/device_cells.hpp"
#include "node/device/node_socket.hpp"
#include "node/device/peer_mappings.hpp"
#include "node/node_path.hpp"

namespace hier {

class ReceiveOffer {
public:
    // `processes`: by node rank.
    ReceiveOffer(const NodeContext& context, DeviceCells& cells,
                 std::vector<NodeSocket::Address> processes, bool has_cma);

    // After the device of the call is chosen, and before any peer on another node may write.
    void begin();
    // Fills what the slot says besides the address.
    void write(NodeSlot& slot);

private:
    void write_device(NodeSlot& slot);
    bool share_segments(std::uint64_t& digest);

    const NodeContext& context_;
    DeviceCells& cells_;
    std::vector<NodeSocket::Address> processes_;
    bool has_cma_;
    bool is_writable_ = false;    // the receive buffer, pinned, by peers
    ExportedMemory exported_{};   // the last that was
    bool is_exportable_ = false;  // it
    bool shares_segments_ = false;
    unsigned calls_ = 0;
};

}  // namespace hier
