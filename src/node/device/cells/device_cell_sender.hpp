// SPDX-License-Identifier: BSD-3-Clause
// The sender's half of device cells: pushes puts into the cells that peers lend (device_cells.hpp).
#pragma once

#include <array>
#include <vector>

#include "node/device/cells/device_cell_copies.hpp"
#include "node/device/cells/device_cell_layout.hpp"

namespace hier {

class DeviceCellSender {
public:
    DeviceCellSender(const NodeContext& context, DeviceCellCopies& copies);

    // Puts to `peer` go into the cells that it lends. All its cells are mapped here at `cells`.
    void use(int peer, std::byte* cells);
    void put(const Transfer& transfer);
    // Starts copies into the peer's free cells.
    Status push(int peer);
    // Tells the peer which fragments have arrived, and completes puts.
    Status tell(int peer, Completions& completions);
    bool idle();
    void end();

private:
    using Layout = DeviceCellLayout;
    // A part of a put, in one cell.
    struct Fragment {
        std::uint64_t ticket = 0;
        Layout::Entry entry{};
        std::uint32_t op = 0;
    };
    struct Put {
        Transfer transfer;
        const std::byte* source;
    };
    struct Outgoing {
        std::byte* cells = nullptr;
        std::vector<Put> puts;
        std::size_t next = 0;  // the put that is being pushed
        std::size_t done = 0;  // bytes of this put
        // Fragments from the first collective on. The ring's sent() counts those that the peer
        // knows of.
        std::uint64_t pushed = 0;
        std::array<Fragment, Layout::cells_per_peer> fragments;
    };

    std::size_t fragments_left(const Outgoing& out) const;

    const NodeContext& context_;
    Layout layout_;
    DeviceCellCopies& copies_;
    std::vector<Outgoing> outgoing_;  // by peer
};

}  // namespace hier
