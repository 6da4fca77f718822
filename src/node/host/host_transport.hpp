// SPDX-License-Identifier: BSD-3-Clause
// The node level for host memory: large puts by CMA, one copy, where processes may write to one
// another, small ones through cells of shared memory, which need no system call, and calls of small
// blocks published in memory that all read.
//
// The first put to a peer decides for the call, so that puts are counted in their order. Median us of
// an allgather on one node (bench/allgather, Xeons; 8 cells of 64 KiB), bytes a rank:
//
//                              4 KiB   16 KiB   64 KiB   256 KiB   1 MiB
//   8 ranks on cores of their own, cells    10       19       80       472    1608
//                                  CMA      16       32       82       305    1193
//   4 ranks on 2 cores,            cells    12       17       41       112     690
//                                  CMA      24       32       60       156     719
//   8 ranks on 2 cores,            cells    27       40       86       334    3228
//                                  CMA     118      119      214       819    5057
//
// Where ranks share cores, who copies out is who needs the bytes next.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "node/host/cma_transport.hpp"
#include "node/host/node_publish.hpp"
#include "node/host/shm_transport.hpp"

namespace hier {

class HostTransport final : public NodeTransport {
public:
    // Of the first put, in bytes; where ranks share cores.
    static constexpr std::size_t max_through_cells = 16 << 10;
    static constexpr std::size_t max_on_shared_cores = 512 << 10;
    // Every communicator has them.
    static constexpr CellShape small_cells = {4, 16 << 10};
    static constexpr CellShape shared_core_cells = {4, 64 << 10};

    // `cma` may be null: everything goes through cells then. `max_bytes_through_cells`: bytes of a first put that does.
    // `publish` may be null: none is published.
    HostTransport(std::shared_ptr<NodeSegment> segment, std::unique_ptr<CmaTransport> cma,
                  std::unique_ptr<ShmTransport> cells, std::unique_ptr<NodePublish> publish,
                  std::size_t max_bytes_through_cells);

    Status begin(const Binding& binding) override;
    Status announced(int peer) override;
    Status entered(int peer) override;
    Status put(const Transfer& transfer) override;
    // From or to memory that CMA does not reach.
    Status put_through_cells(const Transfer& transfer);
    std::uint32_t arrived(int peer) override;
    Status progress(Completions& completions) override;
    bool idle() override;
    void end() override;
    void raise(Status status) override;
    bool may_write(int peer, std::uint32_t count) override;
    std::size_t publish_space() const override { return publish_ ? NodePublish::space : 0; }
    bool has_cma() const { return cma_ != nullptr; }
    const char* name() const override { return name_.c_str(); }

private:
    enum class Choice : std::uint8_t { open, by_cma, by_cells };

    std::unique_ptr<CmaTransport> cma_;
    std::unique_ptr<ShmTransport> cells_;
    std::unique_ptr<NodePublish> publish_;
    std::size_t max_through_cells_;
    std::string name_;
    std::vector<Choice> choices_;  // by peer, in this collective
};

}  // namespace hier
