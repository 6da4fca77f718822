// SPDX-License-Identifier: BSD-3-Clause
// The node level for host memory: announcements and counts in the node's segment; how bytes move is
// the derived class's.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "hier/transport.hpp"
#include "node/node_segment.hpp"
#include "team/group.hpp"

namespace hier {

class NodeTransport : public Transport {
public:
    Status begin(const Binding& binding) override;
    Status announce(int peer) override;
    Status enter(int peer) override;
    Status announced(int peer) override;
    Status entered(int peer) override;
    Status copy(const Transfer& transfer) override;
    Status drain(int, std::uint32_t) override { return Status::ok; }
    std::uint32_t arrived(int peer) override;
    Status progress(Completions& completions) override;
    bool idle() override { return true; }
    void end() override {}
    void tell(std::uint32_t heartbeat) override;
    std::uint32_t heard() override;
    void raise(Status status) override;
    void stop() override;
    bool may_write(int peer, std::uint32_t count) override;
    virtual const char* name() const = 0;
    // May the buffers of a call be memory that the CPU cannot reach?
    virtual bool takes_device_memory() const { return false; }
    // How much a rank may put in a call that is published (NodePublish::space_for); 0: none is.
    virtual std::size_t publish_space() const { return 0; }

protected:
    explicit NodeTransport(std::shared_ptr<NodeSegment> segment) : segment_(std::move(segment)) {}

    const NodeSegment& segment() const { return *segment_; }
    void keep_segment() { segment_->keep(); }  // until the process ends
    bool has_raised() const { return raised_; }
    bool is_alone() const { return segment_ == nullptr; }
    const Binding& binding() const { return binding_; }
    const std::byte* source(const Transfer& transfer) const;

private:
    bool has_failed() const;  // somebody has

    std::shared_ptr<NodeSegment> segment_;  // none for a rank that is alone on its node
    Binding binding_{};
    bool raised_ = false;
};

struct NodeRanks {
    std::vector<int> pids;
    bool have_devices = false;  // any of them uses a GPU runtime
    bool share_cores = false;   // there are more of them than cores
    int numa = -1;              // where this rank's cells are to be; -1: anywhere
};

// Collective over the node's group; throws on all its ranks or on none. `intra` is a HIER_INTRA_*.
std::unique_ptr<NodeTransport> make_node_transport(const Group& group, const NodeRanks& ranks,
                                                   int intra);

// A rank that is alone on its node only copies.
class AloneTransport final : public NodeTransport {
public:
    AloneTransport() : NodeTransport(nullptr) {}
    Status put(const Transfer&) override { return Status::bad_argument; }
    const char* name() const override { return "nobody else"; }
    std::size_t publish_space() const override { return std::numeric_limits<std::size_t>::max(); }
};

}  // namespace hier
