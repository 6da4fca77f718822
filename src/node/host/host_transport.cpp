// SPDX-License-Identifier: BSD-3-Clause
#include "node/host/host_transport.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hier {

HostTransport::HostTransport(std::shared_ptr<NodeSegment> segment,
                             std::unique_ptr<CmaTransport> cma, std::unique_ptr<ShmTransport> cells,
                             std::unique_ptr<NodePublish> publish,
                             std::size_t max_bytes_through_cells)
    : NodeTransport(std::move(segment)), cma_(std::move(cma)), cells_(std::move(cells)),
      publish_(std::move(publish)), max_through_cells_(max_bytes_through_cells),
      name_(cma_ ? format("copies between processes (CMA; up to %zu KiB: %s)",
                          max_through_cells >> 10, cells_->name())
                 : cells_->name()),
      choices_(static_cast<std::size_t>(this->segment().size()))
{
}

Status HostTransport::begin(const Binding& binding)
{
    Status status = NodeTransport::begin(binding);
    if (binding.publish) {
        publish_->begin();
        return status;
    }
    std::fill(choices_.begin(), choices_.end(), cma_ ? Choice::open : Choice::by_cells);
    if (cma_ && !failed(status)) status = cma_->begin(binding);
    return failed(status) ? status : cells_->begin(binding);
}

Status HostTransport::announced(int peer)
{
    const Status status = NodeTransport::announced(peer);
    // For a peer with fewer bytes the call may be published.
    return status == Status::in_progress && publish_ ? publish_->entered(peer, binding()) : status;
}

// What it has published says so first.
Status HostTransport::entered(int peer)
{
    const Status status = publish_->entered(peer, binding());
    return status == Status::in_progress ? NodeTransport::entered(peer) : status;
}

Status HostTransport::put(const Transfer& transfer)
{
    if (binding().publish) return publish_->put(transfer.slice, source(transfer), binding());
    Choice& choice = choices_[static_cast<std::size_t>(transfer.peer)];
    if (choice == Choice::by_cma) return cma_->put(transfer);
    if (choice == Choice::open && transfer.slice.length > max_through_cells_) {
        if (const auto status = cma_->put_if_reachable(transfer)) {
            choice = Choice::by_cma;
            return *status;
        }
    }
    choice = Choice::by_cells;
    return cells_->put(transfer);
}

Status HostTransport::put_through_cells(const Transfer& transfer)
{
    choices_[static_cast<std::size_t>(transfer.peer)] = Choice::by_cells;
    return cells_->put(transfer);
}

std::uint32_t HostTransport::arrived(int peer)
{
    if (binding().publish) return publish_->arrived(peer);
    return cells_->arrived(peer) + (cma_ ? cma_->arrived(peer) : 0);
}

Status HostTransport::progress(Completions& completions)
{
    if (binding().publish) {
        const Status status = NodeTransport::progress(completions);
        return failed(status) || has_raised() ? status : publish_->receive(binding());
    }
    const Status status = cma_ ? cma_->progress(completions) : NodeTransport::progress(completions);
    return failed(status) ? status : cells_->progress(completions);
}

bool HostTransport::idle() { return cells_->idle() && (!cma_ || cma_->idle()); }

void HostTransport::end()
{
    if (binding().publish) return;
    cells_->end();
    if (cma_) cma_->end();
}

void HostTransport::raise(Status status)
{
    NodeTransport::raise(status);
    cells_->raise(status);
    if (cma_) cma_->raise(status);
}

// By CMA alone: all else everybody takes himself.
bool HostTransport::may_write(int peer, std::uint32_t count)
{
    return cma_ && !binding().publish && NodeTransport::may_write(peer, count);
}

}  // namespace hier
