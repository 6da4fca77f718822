// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/sdma_transport.hpp"

#include <unistd.h>

#include "base/log.hpp"
#include "gpu/runtime.hpp"
#include "node/device/exported_allocations.hpp"
#include "node/device/piece_exports.hpp"

namespace hier {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

bool is_of_device(const Region& region) { return hier::is_of_device(region.memory); }

}  // namespace

SdmaTransport::SdmaTransport() : NodeTransport(nullptr), name_("copy engines") {}

SdmaTransport::SdmaTransport(std::shared_ptr<NodeSegment> segment,
                             std::unique_ptr<HostTransport> host,
                             std::unique_ptr<DeviceCells> cells,
                             std::vector<PieceSocket::Address> processes)
    : NodeTransport(std::move(segment)), host_(std::move(host)), cells_(std::move(cells)),
      processes_(std::move(processes)), peers_(static_cast<std::size_t>(this->segment().size())),
      name_(std::string("copy engines, ") + host_->name())
{
}

SdmaTransport::~SdmaTransport()
{
    if (!signals_.release()) keep_segment();
}

const char* SdmaTransport::name() const { return name_.c_str(); }

Status SdmaTransport::begin(const Binding& binding)
{
    Status status = NodeTransport::begin(binding);
    if (host_ && !failed(status)) status = host_->begin(binding);
    for (Peer& p : peers_) {
        p.is_known = false;
        p.delivered = 0;
    }
    unknown_peers_ = peers_.empty() ? 0 : static_cast<int>(peers_.size()) - 1;
    failure_ = status;
    is_settling_ = false;
    device_ = is_of_device(binding.receive) ? binding.receive.memory.device
              : is_of_device(binding.send)  ? binding.send.memory.device
                                            : gpu::used_device();
    // (It writes what is there: not after peers on other nodes may have begun to.)
    is_writable_ = host_ && host_->has_cma() && binding.receive.memory.kind == MemoryKind::pinned &&
                   can_be_written(binding.receive);
    engines_ = nullptr;
    if (device_ >= 0 && failure_ == Status::ok) {
        engines_ = gpu::queue(device_);
        if (engines_ == nullptr) failure_ = Status::transport_error;
    }
    if (cells_) cells_->begin(binding, engines_);
    if (cells_ && ++calls_ % 16 == 0) {  // now and then is enough, for memory to come free
        PieceExports::instance().look_after();
        PeerPieces::instance().listen(device_);
    }
    return failure_;
}

// How this rank's receive buffer may be written.
void SdmaTransport::offer(NodeSlot& slot)
{
    const Region& into = binding().receive;
    const Allocation& memory = into.memory;
    const bool is_host =
        memory.kind == MemoryKind::host || (memory.kind == MemoryKind::pinned && is_writable_);
    slot.path = is_host && host_->has_cma() ? WritePath::by_cpu : WritePath::by_cells;
    if (is_of_device(into) && gpu::peers_may_write()) offer_device(slot);
}

void SdmaTransport::offer_device(NodeSlot& slot)
{
    const Region& into = binding().receive;
    const Allocation& memory = into.memory;
    const auto base = reinterpret_cast<std::uint64_t>(memory.base);
    const bool is_shareable = memory.kind == MemoryKind::device && memory.is_exportable;
    if (exported_.base != base || exported_.length != memory.length || exported_.id != memory.id ||
        memory.id == 0) {
        exported_ = {base, memory.length, memory.id, static_cast<std::int32_t>(getpid()), 0, {}};
        is_exportable_ = is_shareable && gpu::runtime()->export_memory(memory, exported_.handle);
        if (is_exportable_)
            ExportedAllocations::instance().note(exported_, memory.device, processes_);
    }
    const bool is_whole = into.base + into.length <= memory.base + memory.length;
    if (is_exportable_ && is_whole) {
        slot.path = WritePath::by_device;
        slot.memory = exported_;
    } else if (is_shareable && share_pieces(slot.pieces)) {
        slot.path = WritePath::by_pieces;
    } else if (const ExportedMemory* lent = cells_->lend(memory.device); lent != nullptr) {
        slot.path = WritePath::by_device_cells;
        slot.memory = *lent;
    }
}

// Who could not map what it was told of has said so by now.
bool SdmaTransport::share_pieces(std::uint64_t& digest)
{
    PeerPieces::instance().listen(device_);
    if (!PieceExports::instance().share(binding().receive, processes_, digest)) return false;
    if (!shares_pieces_)
        log(HIER_LOG_INFO,
            "device memory that the application has mapped: its peers map its pieces");
    shares_pieces_ = true;
    return true;
}

Status SdmaTransport::announce(int peer)
{
    offer(segment().slot(segment().rank()));
    return NodeTransport::announce(peer);
}

Status SdmaTransport::announced(int peer)
{
    const Status status = NodeTransport::announced(peer);
    Peer& p = peers_[index(peer)];
    if (status != Status::ok || p.is_known) return status;
    p.path = path_to(peer);
    p.is_known = true;
    unknown_peers_--;
    return Status::ok;
}

WritePath SdmaTransport::path_to(int peer)
{
    const NodeSlot& slot = segment().slot(peer);
    if (slot.path == WritePath::by_cpu) return host_->has_cma() ? WritePath::by_cpu : WritePath::by_cells;
    if (slot.path == WritePath::by_cells || engines_ == nullptr) return WritePath::by_cells;
    if (failed(map(peer))) {
        log(HIER_LOG_INFO, "node rank %d's device memory cannot be mapped: through shared memory",
            peer);
        return WritePath::by_cells;
    }
    return slot.path == WritePath::by_pieces ? WritePath::by_device : slot.path;
}

Status SdmaTransport::map(int peer)
{
    const NodeSlot& slot = segment().slot(peer);
    Peer& p = peers_[index(peer)];
    if (slot.path == WritePath::by_pieces)
        return PeerPieces::instance().acquire(processes_[index(peer)],
                                              {slot.address, slot.length, slot.pieces}, device_,
                                              p.window, p.receive);
    PeerMappings& mappings = PeerMappings::instance();
    if (!mappings.has(slot.memory, device_)) PeerPieces::instance().listen(device_);
    const Status status = mappings.acquire(slot.memory, device_, p.mapping);
    if (failed(status)) return status;
    if (slot.path == WritePath::by_device_cells) {
        cells_->use(peer, p.mapping->base);
    } else {
        p.receive = p.mapping->base + (slot.address - slot.memory.base);
    }
    return Status::ok;
}

Status SdmaTransport::put(const Transfer& transfer)
{
    Peer& p = peers_[index(transfer.peer)];
    if (p.path == WritePath::by_cpu && !is_of_device(binding().region(transfer.from)))
        return host_->put(transfer);
    if (p.path == WritePath::by_device_cells) {
        cells_->put(transfer, source(transfer));
        return Status::in_progress;
    }
    if (p.path != WritePath::by_device) return host_->put_through_cells(transfer);
    const int size = segment().size();
    const int lane = (transfer.peer - segment().rank() + size) % size;
    gather({transfer.op,
            transfer.peer,
            {p.receive + transfer.slice.target, source(transfer), transfer.slice.length, lane}});
    return Status::in_progress;
}

// In the memory of the queue's device?
bool SdmaTransport::is_here(Place place) const
{
    const Allocation& memory = binding().region(place).memory;
    return memory.kind == MemoryKind::device && memory.device == device_;
}

Status SdmaTransport::copy(const Transfer& transfer)
{
    if (!is_of_device(binding().region(transfer.from)) &&
        !is_of_device(binding().region(transfer.to)))
        return NodeTransport::copy(transfer);
    const int lane = transfer.to == Place::bounce     ? gpu::Copy::to_host
                     : transfer.from == Place::bounce ? gpu::Copy::from_host
                                                      : gpu::Copy::inside;
    Item item{transfer.op,
              -1,
              {binding().at(transfer.to, transfer.slice.target), source(transfer),
               transfer.slice.length, lane}};
    // The network waits for these.
    if (lane != gpu::Copy::inside) return start_alone(item);
    item.copy.recurs = is_here(transfer.from) && is_here(transfer.to);
    gather(item);
    return Status::in_progress;
}

std::uint32_t SdmaTransport::arrived(int peer)
{
    const std::uint64_t word =
        segment().flag(segment().rank(), peer).by_device.load(std::memory_order_acquire);
    return Signal::count(word, binding().sequence) + host_->arrived(peer) + cells_->arrived(peer);
}

Status SdmaTransport::progress(Completions& completions)
{
    report(completions);
    submit(completions);
    if (failed(failure_)) return failure_;
    if (!host_) return NodeTransport::progress(completions);
    const Status status = host_->progress(completions);
    return failed(status) ? status : cells_->progress(completions);
}

bool SdmaTransport::idle()
{
    std::erase_if(batches_, [&](const Batch& batch) {
        const Status status = engines_->reached(batch.ticket);
        has_hung_ = has_hung_ || status == Status::timed_out;
        return status != Status::in_progress;
    });
    const bool is_host_idle = !host_ || host_->idle();
    const bool are_cells_idle = !cells_ || cells_->idle();
    return batches_.empty() && is_host_idle && are_cells_idle && !may_go_on();
}

Status SdmaTransport::settle()
{
    if (!is_of_device(binding().receive) || !gpu::runtime()->needs_acquire()) return Status::ok;
    if (!is_settling_) {
        const Status status = engines_->start({}, {}, settled_);
        if (failed(status)) return status;
        is_settling_ = true;
    }
    return engines_->reached(settled_);
}

void SdmaTransport::end()
{
    for (Peer& p : peers_) {
        if (p.mapping != nullptr) PeerMappings::instance().release(p.mapping);
        if (p.window != nullptr) PeerPieces::instance().release(p.window);
        p.mapping = nullptr;
        p.window = nullptr;
    }
    gathered_.items.clear();
    batches_.clear();
    if (host_) host_->end();
    if (cells_) cells_->end();
}

void SdmaTransport::raise(Status status)
{
    NodeTransport::raise(status);
    if (host_) host_->raise(status);
    if (cells_) cells_->raise();
    gathered_.items.clear();  // they are started no more
}

void SdmaTransport::stop()
{
    if (!may_go_on()) NodeTransport::stop();
}

bool SdmaTransport::may_go_on() const { return has_hung_ || (cells_ && cells_->has_hung()); }

bool SdmaTransport::may_write(int peer, std::uint32_t count)
{
    const WritePath path = segment().slot(segment().rank()).path;
    const bool is_direct = path == WritePath::by_cpu || path == WritePath::by_device ||
                           path == WritePath::by_pieces;
    return is_direct && NodeTransport::may_write(peer, count);
}

}  // namespace hier
