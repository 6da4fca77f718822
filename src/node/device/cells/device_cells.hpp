// SPDX-License-Identifier: BSD-3-Clause
// A path into device memory that cannot be exported: memory of a pool, or memory that the
// application maps. The receiver lends each peer some cells of device memory that can be exported,
// and copies from there into its receive buffer.
//
//   sender's engine           receiver's cells for it        receiver's engine
//   put, in fragments    -->  [ 0 | 1 | ... | 7 ]       -->  receive buffer
//                             (entry_ring.hpp)
//
// Fragments take the cells in turn. Each side starts copies, comes back later, and then tells the
// other side that they are done. A side starts as many copies at once as it can, because between
// two starts a copy engine idles for some us (CUDA). But one side takes only half of the cells at
// once, so that the other side always has work. The driver makes the copy inside the device, as for
// the own block.
#pragma once

#include "node/device/cells/device_cell_receiver.hpp"
#include "node/device/cells/device_cell_sender.hpp"

namespace hier {

class DeviceCells final : public NodePath {
public:
    explicit DeviceCells(const NodeContext& context);
    DeviceCells(const DeviceCells&) = delete;  // both halves refer to the copies
    DeviceCells& operator=(const DeviceCells&) = delete;
    ~DeviceCells() override = default;

    Status begin() override;
    // The cells that this rank lends, on its device. nullptr: there are none; the cause was logged.
    const ExportedMemory* lend(int device);
    // Puts to `peer` go into the cells that it lends. All its cells are mapped here at `cells`.
    void use(int peer, std::byte* cells);
    Status put(const Transfer& transfer) override;
    std::uint32_t arrived(int peer) const override { return receiver_.arrived(peer); }
    Status progress(Completions& completions) override;
    bool idle() override;
    void end() override { sender_.end(); }
    void raise() override { sender_.end(); }
    // Bytes of all cells that a rank lends.
    std::size_t lent_bytes() const { return DeviceCellLayout(context_).lent_bytes(); }
    // Has a copy exceeded its bound? It may go on for ever.
    bool has_hung() const { return copies_.has_hung(); }

private:
    const NodeContext& context_;
    DeviceCellCopies copies_;
    DeviceCellSender sender_;
    DeviceCellReceiver receiver_;
    bool is_used_ = false;  // in this collective
    Status failure_ = Status::ok;
};

}  // namespace hier
