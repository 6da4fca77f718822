#include "transport/host_transport.hpp"

#include <algorithm>

namespace hier {

HostTransport::HostTransport(std::shared_ptr<NodeSegment> segment,
                             std::unique_ptr<CmaTransport> cma, std::unique_ptr<ShmTransport> cells,
                             std::size_t most)
    : NodeTransport(std::move(segment)), cma_(std::move(cma)), cells_(std::move(cells)),
      most_(most), ways_(static_cast<std::size_t>(this->segment().size()))
{
}

Status HostTransport::begin(const Binding& binding)
{
    std::fill(ways_.begin(), ways_.end(), cma_ ? Way::open : Way::by_cells);
    Status status = NodeTransport::begin(binding);
    if (cma_ && !failed(status)) status = cma_->begin(binding);
    return failed(status) ? status : cells_->begin(binding);
}

Status HostTransport::put(const Transfer& transfer)
{
    Way& way = ways_[static_cast<std::size_t>(transfer.peer)];
    if (way == Way::by_cma) return cma_->put(transfer);
    if (way == Way::open && transfer.slice.length > most_) {
        if (const auto status = cma_->put_if_reachable(transfer)) {
            way = Way::by_cma;
            return *status;
        }
    }
    way = Way::by_cells;
    return cells_->put(transfer);
}

Status HostTransport::put_through_cells(const Transfer& transfer)
{
    ways_[static_cast<std::size_t>(transfer.peer)] = Way::by_cells;
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
