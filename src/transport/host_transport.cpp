#include "transport/host_transport.hpp"

#include <algorithm>

namespace hier {

HostTransport::HostTransport(std::shared_ptr<NodeSegment> segment,
                             std::unique_ptr<CmaTransport> cma, std::unique_ptr<ShmTransport> cells,
                             std::size_t most)
    : NodeTransport(std::move(segment)), cma_(std::move(cma)), cells_(std::move(cells)),
      most_(most), choices_(static_cast<std::size_t>(this->segment().size()))
{
}

Status HostTransport::begin(const Binding& binding)
{
    std::fill(choices_.begin(), choices_.end(), cma_ ? Choice::open : Choice::by_cells);
    Status status = NodeTransport::begin(binding);
    if (cma_ && !failed(status)) status = cma_->begin(binding);
    return failed(status) ? status : cells_->begin(binding);
}

Status HostTransport::put(const Transfer& transfer)
{
    Choice& choice = choices_[static_cast<std::size_t>(transfer.peer)];
    if (choice == Choice::by_cma) return cma_->put(transfer);
    if (choice == Choice::open && transfer.slice.length > most_) {
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
    return cells_->arrived(peer) + (cma_ ? cma_->arrived(peer) : 0);
}

Status HostTransport::progress(Completions& completions)
{
    const Status status = cma_ ? cma_->progress(completions) : NodeTransport::progress(completions);
    return failed(status) ? status : cells_->progress(completions);
}

bool HostTransport::idle() { return cells_->idle() && (!cma_ || cma_->idle()); }

void HostTransport::end()
{
    cells_->end();
    if (cma_) cma_->end();
}

void HostTransport::raise(Status status)
{
    NodeTransport::raise(status);
    cells_->raise(status);
    if (cma_) cma_->raise(status);
}

}  // namespace hier
