// The node level for host memory where processes may write to one another: large puts by CMA, one
// copy, small ones through cells of shared memory, which need no system call.
//
// The first put to a peer decides for the call, so that puts are counted in their order. On 8 cores
// 4 KiB to each of 7 peers take 10 us through cells and 16 by CMA, 64 KiB 80 and 82, 1 MiB 1.6 and
// 1.2 ms (Xeon, commit of this file; bench/allgather on one node).
#pragma once

#include <memory>
#include <vector>

#include "transport/cma_transport.hpp"
#include "transport/shm_transport.hpp"

namespace hier {

class HostTransport final : public NodeTransport {
public:
    static constexpr std::size_t most_through_cells = 16 << 10;  // bytes of the first put
    // For no more than such puts: small, since every communicator has them.
    static constexpr CellShape small_cells = {4, 16 << 10};

    // `cma` may be null: everything goes through cells then. Not both of them.
    HostTransport(std::shared_ptr<NodeSegment> segment, std::unique_ptr<CmaTransport> cma,
                  std::unique_ptr<ShmTransport> cells);

    Status begin(const Binding& binding) override;
    Status put(const Transfer& transfer) override;
    // From or to memory that CMA does not reach.
    Status put_through_cells(const Transfer& transfer);
    std::uint32_t arrived(int peer) override;
    Status progress(Completions& completions) override;
    bool idle() override { return cells_->idle(); }
    void end() override { cells_->end(); }
    void raise(Status status) override;
    bool has_cma() const { return cma_ != nullptr; }
    const char* name() const override { return cma_ ? cma_->name() : cells_->name(); }

private:
    enum class Way : std::uint8_t { open, by_cma, by_cells };

    std::unique_ptr<CmaTransport> cma_;
    std::unique_ptr<ShmTransport> cells_;
    std::vector<Way> ways_;  // by peer, in this collective
};

}  // namespace hier
