// SPDX-License-Identifier: BSD-3-Clause
// The receiver's half of device cells: lends cells, and copies from there into the receive buffer
// (device_cells.hpp).
#pragma once

#include <array>
#include <vector>

#include "node/device/cells/device_cell_copies.hpp"
#include "node/device/cells/device_cell_layout.hpp"
#include "node/device/exports/lent_memory.hpp"

namespace hier {

class DeviceCellReceiver {
public:
    DeviceCellReceiver(const NodeContext& context, DeviceCellCopies& copies);
    ~DeviceCellReceiver();
    DeviceCellReceiver(const DeviceCellReceiver&) = delete;
    DeviceCellReceiver& operator=(const DeviceCellReceiver&) = delete;

    void begin();
    // The cells that this rank lends, on its device. nullptr: there are none; the cause was logged.
    const ExportedMemory* lend(int device);
    // Starts copies of the fragments that the peer has told of.
    Status take(int peer);
    // Gives the peer the cells back that have been copied from.
    Status free(int peer, Completions& completions);
    std::uint32_t arrived(int peer) const;
    bool idle();

private:
    using Layout = DeviceCellLayout;
    struct Incoming {
        std::uint64_t started =
            0;  // copies out of cells; the ring's freed() counts those that are done
        std::array<std::uint64_t, Layout::cells_per_peer> tickets{};
        std::array<bool, Layout::cells_per_peer> is_last{};  // of its put
        std::uint32_t arrived = 0;                           // puts, in this collective
    };

    void give_back();

    const NodeContext& context_;
    Layout layout_;
    DeviceCellCopies& copies_;
    std::vector<Incoming> incoming_;  // by peer
    int device_ = -1;                 // of lent_, or where the last attempt to get it failed
    const LentMemory::Block* lent_ = nullptr;
};

}  // namespace hier
