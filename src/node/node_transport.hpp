// SPDX-License-Identifier: BSD-3-Clause
// The node level of a team. NodeTransport owns the segment that the ranks of the node share, with
// the announcements and the failure word. NodeTransport also owns the binding of the call, and the
// paths that puts take (node_paths.hpp). PathChoice chooses the path of a put.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hier/transport.hpp"
#include "node/node_paths.hpp"
#include "node/node_segment.hpp"
#include "team/group.hpp"

namespace hier {

class NodeTransport final : public Transport {
public:
    // Collective over the node's group, inside a step of it. `segment`: none for a rank that is alone
    // on its node. `needs` says what the segment holds.
    NodeTransport(const Group& group, const NodeRanks& ranks, const NodeNeeds& needs,
                  std::unique_ptr<NodeSegment> segment);
    NodeTransport(const NodeTransport&) = delete;  // the paths refer to the context
    NodeTransport& operator=(const NodeTransport&) = delete;
    ~NodeTransport() override = default;

    Status begin(const Binding& binding) override;
    Status announce(int peer) override;
    Status enter(int peer) override;
    Status announced(int peer) override;
    Status entered(int peer) override;
    Status put(const Transfer& transfer) override;
    Status copy(const Transfer& transfer) override;
    Status exchange(const Binding& binding, const NodeExchange& whole, unsigned looks) override;
    void submit(Completions& completions) override;
    Status drain(int, std::uint32_t) override { return Status::ok; }
    std::uint32_t arrived(int peer) override;
    bool has_ended(int peer) override;
    bool has_to_take(int peer) override;
    Status progress(Completions& completions) override;
    bool idle() override;
    Status settle() override;
    void end() override;
    void tell(std::uint32_t heartbeat) override;
    std::uint32_t heard() override;
    void raise(Status status) override;
    void stop() override;
    bool may_write(int peer, std::uint32_t count) override;

    const char* name() const { return paths_.name.c_str(); }
    // May the buffers of a call be memory that the CPU cannot reach?
    bool takes_device_memory() const { return paths_.engines != nullptr; }
    // Have all ranks agreed not to publish in this call? Then the call begins anew: they announce, and push by copy
    // engines. Nothing has been put.
    bool wants_announcements() const
    {
        return has_device_publish() && !context_.raised &&
               paths_.device_publish->wants_announcements();
    }
    // Has a kernel moved the last call, which has ended?
    bool ran_kernel() const
    {
        if (has_device_publish()) return paths_.device_publish->ran_kernel();
        return !is_published() && paths_.engines && paths_.engines->ran_kernel();
    }
    // Does the peer copy a published block of so many bytes out of its owner's memory?
    bool lends(std::size_t bytes) const { return paths_.publish && paths_.publish->lends(bytes); }
    // Has a block been lent in the last call?
    bool has_lent() const { return is_published() && paths_.publish->has_lent(); }
    // How much a rank may put in a published call (NodePublish::space_for). 0: no call is
    // published.
    std::size_t publish_space() const;
    // The same of ranks whose buffers are in host memory, in mixed calls. 0: there are none, because no rank of the node
    // uses a GPU.
    std::size_t host_publish_space() const;

    // May a rank's blocks lie elsewhere than at home? In published calls each rank copies them out
    // itself. In others all ranks read where they lie.
    bool takes_displacements(bool is_published) const
    {
        if (is_published) return paths_.device_publish == nullptr;
        return segment_ == nullptr || !segment_->displacements(0).empty();
    }

    // Rates::shared_result, for host memory.
    std::size_t max_shared_result() const
    {
        const bool is_all =
            paths_.cells && (!paths_.cma || paths_.choice.limits().put == CellLimits::none);
        return is_all ? CellLimits::none : paths_.choice.limits().result;
    }
    // The largest block of host memory that is published on a single node.
    std::size_t max_published(bool is_skewed) const
    {
        return is_skewed ? paths_.max_skewed : paths_.max_published;
    }

private:
    Status publish(const Transfer& home);
    Status empty_put(Transfer transfer);
    // Published calls go to their path without a virtual call, because they are polled often.
    bool is_published() const { return context_.binding.publish && paths_.publish != nullptr; }
    // May some ranks of the node publish and others announce?
    bool is_mixed() const { return context_.binding.is_mixed && !mixed_.empty(); }
    // Does the call go by device_publish?
    bool has_device_publish() const
    {
        return context_.binding.publish && !context_.binding.is_mixed && paths_.device_publish;
    }
    // ok: there is a block of the peer, of this call. mismatch: of another call.
    Status published_by(int peer) const;
    // The same of the entry word, or of a block that came before it.
    Status entered_alike(int peer);
    bool is_displaced(int peer) const
    {
        return is_offer_taken(peer) && context_.offer(peer).is_displaced != 0;
    }
    // With the places of its bytes in the two buffers, in place of their homes.
    Transfer placed(Transfer transfer, bool is_put) const;
    const std::byte* source_of(const Transfer& home) const;
    // What a rank has announced for this call.
    NodeOffer& offer_of(int rank) const
    {
        return segment_->slot(rank).offers[context_.binding.sequence % 2];
    }
    // Copies and checks it.
    Status take_offer(int peer);
    bool is_offer_taken(int peer) const
    {
        return offered_in_[static_cast<std::size_t>(peer)] == context_.binding.sequence;
    }

    std::unique_ptr<NodeSegment> segment_;  // none for a rank that is alone on its node
    NodeContext context_;
    NodePaths paths_;
    std::vector<int> pids_;  // by rank of the node
    // The paths of a published call, and those of any other call. Copy engines come first.
    std::vector<NodePath*> published_, others_;
    // In a mixed call: those of a rank that publishes, and of another one.
    std::vector<NodePath*> host_published_, mixed_;
    std::span<NodePath* const> active_;      // in this call
    std::vector<std::uint64_t> offered_in_;  // by peer: the call that context_.offers is taken in
};

}  // namespace hier
