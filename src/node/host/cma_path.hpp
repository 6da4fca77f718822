// SPDX-License-Identifier: BSD-3-Clause
// Host memory inside a node, by Cross Memory Attach (CMA). process_vm_writev writes straight into
// the peer's receive buffer, with one copy.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "node/node_path.hpp"

namespace hier {

class CmaPath final : public NodePath {
public:
    static constexpr const char* name = "copies between processes (CMA)";

    CmaPath(const NodeContext& context, std::vector<int> pids)
        : context_(context), pids_(std::move(pids)), delivered_(pids_.size())
    {
    }

    Status begin() override;
    // Long puts go on in progress(), so that the network is served in between.
    Status put(const Transfer& transfer) override;
    // Like put(), for the first put to a peer in a call. No value: the kernel refuses the peer's
    // memory, or the source.
    std::optional<Status> put_if_reachable(const Transfer& transfer);
    std::uint32_t arrived(int peer) const override;
    Status progress(Completions& completions) override;
    bool idle() override { return long_.empty(); }
    void end() override { long_.clear(); }
    void raise() override { long_.clear(); }

private:
    struct Long {
        Transfer transfer;
        std::size_t done;  // bytes
    };
    static constexpr std::size_t max_at_once = 1 << 20;  // bytes

    bool fits_at_peer(const Transfer& transfer);
    int try_to_write(const Transfer& transfer, Extent part);
    Status report(const Transfer& transfer, Extent part, int cause);
    void count(int peer);

    const NodeContext& context_;
    std::deque<Long> long_;
    std::vector<int> pids_;
    std::vector<std::uint32_t> delivered_;  // in this call, by peer
};

// Could a peer write to this memory? A driver's mapping of pinned memory may refuse that.
bool can_be_written(const Region& region);

}  // namespace hier
