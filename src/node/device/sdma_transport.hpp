// SPDX-License-Identifier: BSD-3-Clause
// The node level where ranks use GPUs: copy engines push slices straight into the peers' device
// memory, and any other pair of memories takes the way that is left.
//
//                         into host memory           into device memory
//   from host memory      CMA or cells               copy engine, else cells
//   from device memory    cells                      copy engine, else cells
//
// The receiver says how its buffer may be written (NodeSlot::path), the sender decides; no two ranks
// have to agree on anything. What an application has mapped itself is shared by the piece
// (peer_pieces.hpp). Into memory that cannot be exported copy engines push by way of some that can
// (device_cells.hpp). Cells (shm_transport.hpp) work for every pair: where a rank has used
// no device yet, where memory cannot be mapped.
//
// Each rank pushes (G-1)*S bytes out of its device and gets as many. No kernel is launched here;
// what a runtime makes of the copy inside a device is its own affair. Copies that may run are given
// to the device in one call and in the plan's staggered order, so that at no time two ranks push
// into the same one: which is why they wait, for a bounded time, until all peers are in the call.
#pragma once

#include <chrono>
#include <vector>

#include "hier/gpu.hpp"
#include "memory/registration.hpp"
#include "node/device/device_cells.hpp"
#include "node/device/peer_pieces.hpp"
#include "node/host/host_transport.hpp"

namespace hier {

class SdmaTransport final : public NodeTransport {
public:
    // Of a rank that is alone on its node.
    SdmaTransport();
    // `processes`: by node rank.
    SdmaTransport(std::shared_ptr<NodeSegment> segment, std::unique_ptr<HostTransport> host,
                  std::unique_ptr<DeviceCells> cells, std::vector<PieceSocket::Address> processes);
    ~SdmaTransport() override;

    Status begin(const Binding& binding) override;
    Status announce(int peer) override;
    Status announced(int peer) override;
    Status put(const Transfer& transfer) override;
    Status copy(const Transfer& transfer) override;
    void submit(Completions& completions) override;
    std::uint32_t arrived(int peer) override;
    Status progress(Completions& completions) override;
    bool idle() override;
    Status settle() override;
    void end() override;
    void raise(Status status) override;
    void stop() override;
    bool may_write(int peer, std::uint32_t count) override;
    const char* name() const override;
    bool takes_device_memory() const override { return true; }

private:
    struct Peer {
        WritePath path = WritePath::by_cells;  // of this collective, once it is known
        bool is_known = false;
        PeerMappings::Mapping* mapping = nullptr;
        PeerPieces::Window* window = nullptr;
        std::byte* receive = nullptr;  // by_device: its receive buffer, here
        std::uint32_t delivered = 0;   // by_device, in this collective
    };
    struct Item {
        std::uint32_t op;
        int peer;  // that is told; -1: nobody
        gpu::Copy copy;
    };
    struct Batch {
        std::uint64_t ticket;
        bool is_told;  // the device stores the signals
        std::vector<Item> items;
    };

    void offer(NodeSlot& slot);
    void offer_device(NodeSlot& slot);
    bool share_pieces(std::uint64_t& digest);
    WritePath path_to(int peer);
    Status map(int peer);
    bool is_here(Place place) const;
    std::atomic<std::uint64_t>& signal_to(int peer) const;
    void gather(const Item& item);
    Status start_alone(const Item& item);
    Batch spare_batch();
    // May what is gathered wait for peers that are about to enter the call?
    bool should_hold();
    void start(Completions& completions);
    void give_up(Status status);
    // A copy of ours, however long?
    bool may_go_on() const;
    void report(Completions& completions);
    // Lets the device store signals. False: report() does.
    bool register_signals();

    // None for a rank that is alone.
    std::unique_ptr<HostTransport> host_;
    std::unique_ptr<DeviceCells> cells_;
    std::vector<PieceSocket::Address> processes_;
    std::vector<Peer> peers_;
    // The device whose engines copy in this collective; -1: this rank has used none so far.
    int device_ = -1;
    gpu::Queue* engines_ = nullptr;
    ExportedMemory exported_{};   // the last that was
    bool is_exportable_ = false;  // it
    Batch gathered_{};
    std::chrono::steady_clock::time_point held_since_;
    bool shares_pieces_ = false;
    unsigned calls_ = 0;
    int unknown_peers_ = 0;  // not in this call yet, as far as we have seen
    std::vector<gpu::Copy> copies_;
    std::vector<Batch> batches_;  // started
    std::vector<gpu::Word> words_;
    std::vector<Batch> spare_;
    Status failure_ = Status::ok;
    Registration signals_;      // of the segment's
    bool has_hung_ = false;     // a copy may go on, however long
    bool is_writable_ = false;  // the receive buffer, pinned, by peers
    bool is_settling_ = false;
    std::uint64_t settled_ = 0;  // ticket
    std::string name_;
};

}  // namespace hier
