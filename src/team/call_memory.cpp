// SPDX-License-Identifier: BSD-3-Clause
#include "team/call_memory.hpp"

#include "memory/resident.hpp"

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

// Buffers that the network does not reach go through a bounce buffer. The CPU receives eager
// messages. A rank that passes on what it received sends them from its receive buffer too.
Status CallMemory::bind(const Call& call, const Choice& choice, Binding& binding)
{
    binding.send = call.send;
    binding.receive = call.receive;
    binding.eager = choice.eager;
    binding.publish = choice.publish;
    binding.chunks = (call.bytes + choice.chunk - 1) / choice.chunk;
    const Status status = classify_memory(call, binding);
    if (failed(status) || !setup_.rail) return status;
    const bool is_on_device =
        is_of_device(binding.receive.memory) || is_of_device(binding.send.memory);
    const bool is_reached =
        choice.eager ? !is_on_device && setup_.rail->register_sources(binding, choice.passes_on())
                     : setup_.rail->register_buffers(binding);
    return is_reached || reserve_bounce(binding) ? Status::ok : Status::out_of_memory;
}

bool CallMemory::reserve_bounce(Binding& binding)
{
    const Allocation& receive = binding.receive.memory;
    const Allocation& send = binding.send.memory;
    const int device = is_of_device(receive) ? receive.device
                       : is_of_device(send)  ? send.device
                                             : -1;
    if (!bounce_) {
        bounce_ = std::make_shared<HostMemory>();
        setup_.rail->keep(bounce_);
    }
    binding.bounce = {bounce_->reserve(device, binding.receive.length), binding.receive.length};
    binding.bounce.memory.kind = bounce_->is_pinned() ? MemoryKind::pinned : MemoryKind::host;
    return binding.bounce.base != nullptr;
}

}  // namespace hier
