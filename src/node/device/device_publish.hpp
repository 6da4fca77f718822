// SPDX-License-Identifier: BSD-3-Clause
// Small blocks in device memory, between ranks that share GPUs. They take two copies per rank,
// however many ranks there are: the own block out to the published half (node_publish.hpp), and the
// blocks of all ranks in from their halves, as the rows of one copy.
//
//   rank 0's memory  --copy-->  half of rank 0  |
//   rank 1's memory  --copy-->  half of rank 1  |--one copy of rows-->  receive buffer
//   ...                                         |
//
// Copy engines take a copy for each peer, and ranks that share a GPU wait for each other's. Without
// MPS the driver even gives the processes turns of about 0.3 ms, but it makes neither of these two
// copies wait for one. The own block comes in with the others, because a copy inside the device
// would wait. Buffers may also be host memory, on any rank. If both are, the rank takes no copies of the
// device, and waits for no word on kernels.
//
// With kernels the call goes by these, if all ranks have their buffers in device memory
// (kernel_exchange.hpp). If these start late, blocks that are in place may be announced and pushed instead.
//
// Where the CPU of each rank reaches device memory, it moves the smallest blocks itself, through the
// halves as well. A buffer that it does not reach takes the copies above: that is the rank's own
// affair.
//
// Each rank puts one block in a call. On a node of G ranks a rank moves S bytes out of its device
// and G*S in.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hier/gpu.hpp"
#include "node/device/cpu_access.hpp"
#include "node/device/kernel_exchange.hpp"
#include "node/host/node_publish.hpp"
#include "node/node_path.hpp"

namespace hier {

class DevicePublish final : public NodePath {
public:
    // `kernels`: null if there are none. `max_by_cpu`: the largest block that the CPU moves, equal on
    // all ranks.
    DevicePublish(NodeContext& context, NodePublish& published,
                  std::unique_ptr<KernelExchange> kernels, std::size_t max_by_cpu);

    // CopyEngines has chosen the device of the call.
    Status begin() override;
    Status put(const Transfer& transfer) override;
    // For NodeTransport::exchange(). put() of the same call may follow. False: a buffer is in device memory, and nothing
    // has happened.
    bool enter_from_host(const Transfer& transfer);
    // Of the own block into the receive buffer.
    Status copy(const Transfer& transfer);
    std::uint32_t arrived(int peer) const override;
    Status progress(Completions& completions) override;
    bool idle() override;
    void end() override {}
    void raise() override;
    bool ran_kernel() const { return way_ == KernelExchange::Way::kernel; }
    // Have all ranks agreed on that? Then this path does nothing more in the call.
    bool wants_announcements() const { return way_ == KernelExchange::Way::pushes; }
    // Has a copy exceeded its bound? It may go on for ever.
    bool has_hung() const { return has_hung_ || (kernels_ && kernels_->has_hung()); }

private:
    // Copies that were started together.
    struct Started {
        std::uint64_t ticket;
        std::uint32_t op;  // of the put
    };

    bool receives_on_device() const { return is_of_device(context_.binding.receive.memory); }
    Status put_without_kernel(const Transfer& transfer);
    Status choose_way(Completions& completions);
    Status progress_kernel(Completions& completions);
    Status progress_copies(Completions& completions);
    Status start(std::optional<Started>& started, std::uint32_t op);
    // ok: the copies are done, or there were none.
    Status reached(const std::optional<Started>& started);
    void add_to_rows(const NodePublish::Arrived& block);
    Status end_put(Completions& completions);
    Status copy_in();
    Status copy_own_by_cpu();
    Status store_block_of(int rank);
    Status land_by_cpu();

    NodeContext& context_;
    NodePublish& published_;
    std::unique_ptr<KernelExchange> kernels_;
    const std::size_t max_by_cpu_;
    ReachedBuffer sent_, received_;
    // Of the buffers of this call, where the CPU moves device memory. Else null.
    const gpu::CpuWindow *send_window_ = nullptr, *receive_window_ = nullptr;
    int landed_ = 0;  // ranks whose blocks the CPU has stored in the receive buffer, or passed over
    KernelExchange::Way way_ = KernelExchange::Way::copies;
    std::optional<Transfer> waiting_;  // the put, until the way of the call is known
    std::optional<Started> out_, in_;
    std::optional<std::uint32_t> own_;  // the copy of the own block
    bool has_landed_ = false;           // all blocks are in the receive buffer
    bool has_hung_ = false;
    std::vector<gpu::Copy> copies_;  // about to be started
};

}  // namespace hier
