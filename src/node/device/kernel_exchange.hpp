// SPDX-License-Identifier: BSD-3-Clause
// A published call of a node by one kernel for each rank (hier/gpu_exchange.hpp), if all ranks have
// their buffers in device memory. Otherwise the call goes by pushes or by copies (device_publish.hpp).
//
// Each rank lends a zone of device memory to its peers. It says in its slot where the zone is, and,
// when it enters a call, whether it can take part with a kernel:
//
//   - its buffers are in the memory of the zone's device, and
//   - it has mapped the zones of all peers, and has told of its own zone before this call, and
//   - ranks that use the same device get it together, not in turns, and
//   - the last kernels have started at once (compute_units.hpp).
//
// A rank that cannot, though its peers know its zone, also says whether it can push: its own block is in place, and its
// peers can map its receive buffer. So does a rank whose peer has said that in the call before.
//
//   all ranks say "kernel"   a kernel
//   all ranks say "push"     the call begins anew: the ranks announce, and copy engines push
//   else                     copies through memory of the host
//
// When all peers are in the call, all ranks with device memory have read the same words, so they decide
// alike. A rank with host memory need not read: its own word says neither. The first
// call of a team tells of the zones and goes by copies. So does a call on another device.
//
// A kernel waits for those of the peers, so no kernel starts before all ranks are in the call. And a
// process takes part in one such call at a time: two processes that start two kernels in different
// orders may wait for each other, because some calls of a runtime wait for all kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "hier/gpu_exchange.hpp"
#include "node/device/compute_units.hpp"
#include "node/device/exports/lent_memory.hpp"
#include "node/device/exports/receive_offer.hpp"
#include "node/device/imports/peer_mappings.hpp"
#include "node/node_path.hpp"

namespace hier {

class KernelExchange {
public:
    enum class Way : std::uint8_t { open, kernel, pushes, copies };

    KernelExchange(NodeContext& context, ReceiveOffer& offer);
    ~KernelExchange();
    KernelExchange(const KernelExchange&) = delete;
    KernelExchange& operator=(const KernelExchange&) = delete;

    // The largest block that a rank of so many can put.
    static std::size_t max_block(int ranks)
    {
        return gpu::Exchange::max_block(static_cast<unsigned>(ranks));
    }

    // The number of the kernel behind the n-th one. Its lower half is a flag, so it is not 0.
    static constexpr std::uint64_t kernel_after(std::uint64_t n)
    {
        return static_cast<std::uint32_t>(n + 1) != 0 ? n + 1 : n + 2;
    }

    // Has the rank of this slot said what it can do in this call, or announced?
    static bool has_said(const NodeSlot& slot, std::uint64_t sequence, std::uint32_t& what);

    // This rank is in the call with its block.
    void enter(const Transfer& block);
    bool has_entered() const;
    // open: a peer is not in the call yet.
    Status decide(Way& way);
    // Only after decide() has said `kernel`. in_progress: not yet; call it again.
    Status launch();
    // in_progress: the kernel runs, or has not been launched.
    Status reached();
    // This rank has failed: its kernel ends without its peers' blocks.
    void stop();
    // Has the kernel exceeded the bound? It may go on for ever.
    bool has_hung() const { return has_hung_; }

private:
    // What a rank has told of its zone.
    struct Zone {
        std::uint32_t number = 0;  // 0: nothing
        std::uint64_t device = 0;
        bool is_in_turns = false;
        PeerMappings::Mapping* mapping = nullptr;
    };

    std::uint32_t ranks() const { return static_cast<std::uint32_t>(context_.size()); }
    gpu::Exchange::Control* control() const;
    bool reserve();
    void release();
    bool has_device_buffers() const;
    bool has_mapped_all() const;
    bool is_ready() const;
    bool can_push();
    void renew_zone();
    bool take_zone();
    void give_back_zone();
    void map_zones();
    void find_turns();
    Status check(int peer) const;
    ComputeUnits::Clock::duration patience() const;

    NodeContext& context_;
    ReceiveOffer& offer_;
    Transfer block_{};
    bool can_ = false;       // take part with a kernel in this call, which has not ended
    bool can_push_ = false;  // or by copy engines; false if nobody has to ask
    // In the last call that was in place, a peer has said that it can push, and no call since then had a kernel.
    bool has_peer_pushed_ = false;
    bool is_reserved_ = false;  // the one kernel that the process runs at a time
    const LentMemory::Block* zone_ = nullptr;
    std::uint32_t zone_number_ = 0;  // of zone_; counts from 1
    std::uint64_t kernels_ = 0;      // the number of the last kernel of the team, on all ranks
    bool zone_has_last_ = false;     // was that kernel in zone_? If not, none was
    std::uint64_t zone_era_ = 0;     // the upper half of the numbers of the kernels in zone_
    int refused_on_ = -1;            // the device that has no zone or no kernels
    std::vector<Zone> zones_;        // by node rank; those of peers are mapped
    bool is_device_shared_ = false;  // by several ranks
    bool is_in_turns_ = false;       // such ranks get it in turns
    std::uint64_t ticket_ = 0;
    ComputeUnits::Kernel watch_;
    bool is_running_ = false;
    bool has_hung_ = false;
};

}  // namespace hier
