// SPDX-License-Identifier: BSD-3-Clause
#include "team/call_memory.hpp"

#include <algorithm>

#include "memory/resident.hpp"
#include "memory/staging_pool.hpp"

namespace hier {

// Finds out which of a call's buffers the copy engines of a device have to move.
Status CallMemory::classify_memory(const Call& call, Binding& binding) const
{
    const bool takes_devices = setup_.node->takes_device_memory();
    const bool is_for_nics = setup_.rail && setup_.rail->traits().is_rdma;
    if (!takes_devices && !is_for_nics) {  // the CPU reaches all of it
        binding.receive.memory = binding.send.memory = {};
        return Status::ok;
    }
    if (failed(call.memory_error)) return call.memory_error;
    // Managed memory counts as the host's if the team takes no device memory. Otherwise managed
    // memory counts as the host's while the CPU has its pages, but not with RDMA: a NIC may not
    // reach them.
    const auto place = [&](Region& region) {
        if (region.memory.kind == MemoryKind::managed &&
            (!takes_devices || (!is_for_nics && is_resident(region.base, region.length))))
            region.memory.device = -1;
    };
    place(binding.receive);
    if (call.in_place) {
        binding.send.memory = binding.receive.memory;
    } else {
        place(binding.send);
    }
    return Status::ok;
}

Status CallMemory::bind(const Call& call, const Choice& choice, Binding& binding,
                        bool& needs_bounce)
{
    binding.number = ++bindings_;
    binding.send = call.send;
    binding.receive = call.receive;
    binding.eager = choice.eager;
    binding.in_background = call.in_background;
    binding.chunks = (call.bytes + choice.chunk - 1) / choice.chunk;
    binding.total = call.total(setup_.topology.size());
    binding.hash = CallShape::hash(call.blocks);
    binding.homes = BlockHomes(call.blocks, call.pitch());
    binding.displacements = call.displacements;
    if (setup_.rail) {
        const int rail = setup_.topology.rail_of(rank_);
        binding.rail_ranks = setup_.topology.ranks_on_rail(rail);
    }
    const Status status = classify_memory(call, binding);
    // On several nodes ranks publish blocks at home only.
    const bool may_publish = call.displacements.empty() || setup_.topology.nodes() == 1;
    binding.is_mixed = choice.host_publishes;
    binding.publish =
        choice.publish || (choice.host_publishes && may_publish && !binding.is_on_device());
    needs_bounce = !failed(status) && setup_.rail && !is_in_reach(choice, binding);
    return status;
}

// Buffers that the network does not reach go through a bounce buffer. The CPU receives eager
// messages. A rank that passes on what it received sends them from its receive buffer too.
bool CallMemory::is_in_reach(const Choice& choice, const Binding& binding) const
{
    const bool is_sparse = binding.receive.is_sparse || binding.send.is_sparse;
    if (is_sparse && setup_.rail->traits().is_rdma) return false;
    if (!choice.eager) return setup_.rail->register_buffers(binding);
    return !binding.is_on_device() && setup_.rail->register_sources(binding, choice.passes_on());
}

Status CallMemory::bind_bounce(const Program& program, Binding& binding)
{
    const Allocation& receive = binding.receive.memory;
    const Allocation& send = binding.send.memory;
    const int device = is_of_device(receive) ? receive.device
                       : is_of_device(send)  ? send.device
                                             : -1;
    // A rank that neither sends nor receives on the network has an empty one.
    const std::size_t bytes = std::max<std::size_t>(program.bounce_bytes(), 1);
    bool is_pinned = false;
    bounce_ = StagingPool::instance().borrow_shared(device, bytes, is_pinned);
    binding.bounce = {bounce_.get(), bytes};
    binding.bounce.memory.kind = is_pinned ? MemoryKind::pinned : MemoryKind::host;
    binding.bounce_places = program.bounce_places();
    return bounce_ ? Status::ok : Status::out_of_memory;
}

void CallMemory::end(bool has_failed)
{
    if (bounce_ && has_failed) setup_.rail->keep(bounce_);
    bounce_.reset();
}

}  // namespace hier
