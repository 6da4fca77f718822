// SPDX-License-Identifier: BSD-3-Clause
// Tells the other ranks of a node how they may write into this rank's receive buffer. Used if any
// rank uses a GPU.
#pragma once

#include <vector>

#include "node/device/cells/device_cells.hpp"
#include "node/device/imports/peer_mappings.hpp"
#include "node/device/imports/peer_table.hpp"
#include "node/node_path.hpp"

namespace hier {

class ReceiveOffer {
public:
    ReceiveOffer(const NodeContext& context, DeviceCells& cells, PeerTables tables, bool has_cma);

    // Call this when the device of the call is chosen, and before peers on other nodes may write.
    void begin();
    // May copy engines of the peers write into the buffer, in an allocation that they map as a whole?
    bool is_for_engines();
    // Fills the offer, but for the buffer's address.
    void write(NodeOffer& offer);

private:
    void export_allocation();
    bool is_exported_whole() const;
    void write_device(NodeOffer& offer);
    bool share_segments(std::uint64_t& digest);

    const NodeContext& context_;
    DeviceCells& cells_;
    PeerTables tables_;
    bool has_cma_;
    bool is_writable_ = false;    // the receive buffer is pinned, and peers can write to it
    ExportedMemory exported_{};   // the last allocation that was looked at
    bool is_exportable_ = false;  // whether that allocation could be exported
    bool shares_segments_ = false;
    unsigned calls_ = 0;
};

}  // namespace hier
