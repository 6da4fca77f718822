// SPDX-License-Identifier: BSD-3-Clause
// A path that puts take inside a node, and the state that all paths of a node share. NodeTransport
// owns the paths and this state, and chooses the path of each put.
#pragma once

#include <vector>

#include "hier/gpu.hpp"
#include "hier/transport.hpp"
#include "node/node_segment.hpp"

namespace hier {

// CopyEngines writes the device and the queue. NodeTransport writes the rest.
struct NodeContext {
    NodeSegment* segment = nullptr;  // none for a rank that is alone on its node
    Binding binding{};               // of the call
    bool raised = false;             // this rank has raised a failure
    // What the peers that have announced say of their receive buffers, by node rank: copies that have
    // been checked.
    std::vector<NodeOffer> offers = {};
    // The device whose engines copy in this call, and the queue of this device. -1 and nullptr:
    // this rank has used no device so far.
    int device = -1;
    gpu::Queue* queue = nullptr;

    // A small call is often the same as the last one, and takes little longer than this copy.
    void bind(const Binding& call)
    {
        if (call.number != 0 && call.number == binding.number)
            binding.sequence = call.sequence;
        else
            binding = call;
    }
    int rank() const { return segment->rank(); }
    int size() const { return segment->size(); }
    // Where bytes of one block lie in this rank's receive buffer, which others know by their home. False: not in the
    // buffer.
    bool find(std::size_t home, std::size_t length, std::size_t& place) const
    {
        const auto blocks = binding.displacements.size();
        if (blocks > 0 && binding.homes.block_at(home) >= blocks) return false;
        place = binding.in_receive(home);
        return fits(place, length, binding.receive.length);
    }
    // Has any rank of the node raised a failure?
    bool has_failed() const
    {
        return segment != nullptr && segment->failure().load(std::memory_order_relaxed) != 0;
    }
    const NodeOffer& offer(int peer) const { return offers[static_cast<std::size_t>(peer)]; }
    const std::byte* source(const Transfer& transfer) const
    {
        return binding.at(transfer.from, transfer.slice.source);
    }
};

// The functions are those of Transport. A path takes part only in calls that may use it.
class NodePath {
public:
    virtual ~NodePath() = default;

    // The context already has the binding of the call.
    virtual Status begin() = 0;
    virtual Status put(const Transfer& transfer) = 0;
    virtual std::uint32_t arrived(int peer) const = 0;  // by this path
    virtual Status progress(Completions& completions) = 0;
    virtual bool idle() = 0;
    virtual void end() = 0;
    // This rank has failed: the path starts nothing more.
    virtual void raise() {}
};

}  // namespace hier
