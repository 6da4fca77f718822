// SPDX-License-Identifier: BSD-3-Clause
// Host memory inside a node by Cross Memory Attach: process_vm_writev straight into the peer's
// receive buffer, one copy.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "node/node_path.hpp"
#include "team/group.hpp"

namespace hier {

class CmaPath final : public NodePath {
public:
    static constexpr const char* name = "copies between processes (CMA)";

    CmaPath(const NodeContext& context, std::vector<int> pids)
        : context_(context), pids_(std::move(pids)), delivered_(pids_.size())
    {
    }

    Status begin() override;
    // Long ones go on in progress(), so that the network is served in between.
    Status put(const Transfer& transfer) override;
    // As put(), for the first put to a peer in a call. None: no process may write to that memory or
    // read the source.
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
    std::vector<std::uint32_t> delivered_;  // in this collective, by peer
};

// Could a peer write there? Drivers' mappings of pinned memory refuse it.
bool can_be_written(const Region& region);

// Collective: writes a word into every peer and looks whether it came. Empty when all ranks may
// write to all others, else what refused it, the same on all ranks but for its wording.
std::string try_cma(const Group& group, const std::vector<int>& pids);

}  // namespace hier
