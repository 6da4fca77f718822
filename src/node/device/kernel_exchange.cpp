// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/kernel_exchange.hpp"

#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "base/disagreement.hpp"
#include "base/log.hpp"
#include "gpu/runtime.hpp"

namespace hier {
namespace {

using gpu::Exchange;

// A call of this process may go by a kernel.
std::atomic<bool> reserved{false};

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// The count of the word by which a rank enters a call: what it can do, and the number of its zone.
constexpr std::uint32_t by_kernel = 1, by_pushes = 2;
constexpr int zone_at = 2;
constexpr std::uint32_t encode(std::uint32_t zone, bool can, bool can_push)
{
    return zone << zone_at | (can ? by_kernel : 0) | (can_push ? by_pushes : 0);
}

bool clear(std::byte* zone, std::size_t bytes)
{
    const std::vector<std::byte> zeros(bytes);
    const gpu::Copy copy{zone, zeros.data(), bytes, gpu::Copy::from_host};
    return !failed(gpu::copy_now({&copy, 1}));
}

}  // namespace

KernelExchange::KernelExchange(NodeContext& context, ReceiveOffer& offer)
    : context_(context), offer_(offer), zones_(index(context.size()))
{
}

KernelExchange::~KernelExchange()
{
    if (is_running_)
        log(HIER_LOG_INFO,
            "a kernel of a failed call has not ended, and hier's next one waits for it");
    release();
    give_back_zone();
}

bool KernelExchange::reserve()
{
    is_reserved_ = !reserved.exchange(true);
    return is_reserved_;
}

void KernelExchange::release()
{
    if (std::exchange(is_reserved_, false)) reserved = false;
}

// The mappings of the peers' zones belong to the zone's device. After a failed call with kernels peers
// may still write into the zone.
void KernelExchange::give_back_zone()
{
    for (Zone& zone : zones_) {
        if (zone.mapping != nullptr) PeerMappings::instance().release(zone.mapping);
        zone = {};
    }
    const bool has_failed = context_.raised || context_.has_failed();
    if (zone_ != nullptr && !(has_failed && can_)) LentMemory::instance().give_back(zone_->base);
    zone_ = nullptr;
}

bool KernelExchange::has_device_buffers() const
{
    const auto is_here = [&](const Allocation& memory) {
        return memory.kind == MemoryKind::device && memory.device == context_.device;
    };
    return context_.queue != nullptr && is_here(context_.binding.region(block_.from).memory) &&
           is_here(context_.binding.receive.memory);
}

gpu::Exchange::Control* KernelExchange::control() const
{
    std::byte* const at = zone_->base + Exchange::control_at(ranks());
    return reinterpret_cast<Exchange::Control*>(at);
}

bool KernelExchange::take_zone()
{
    if (!context_.queue->has_kernels()) return false;
    const std::size_t bytes = Exchange::zone_bytes(ranks());
    zone_ = LentMemory::instance().take_for_kernels(context_.device, bytes);
    return zone_ != nullptr && clear(zone_->base, bytes);
}

// A flag must not come twice, so each era needs a zone without old flags.
void KernelExchange::renew_zone()
{
    const std::uint64_t era = kernel_after(kernels_) >> 32;
    if (zone_ != nullptr && zone_->device == context_.device && zone_era_ == era) return;
    // The largest number that the word of a call can tell.
    constexpr std::uint32_t most = Signal::max_count >> zone_at;
    if (refused_on_ == context_.device || zone_number_ == most) return;
    give_back_zone();
    if (!take_zone()) {
        give_back_zone();
        refused_on_ = context_.device;
        log(HIER_LOG_INFO, "device %d: small blocks go without kernels", context_.device);
        return;
    }
    zone_era_ = era;
    zone_has_last_ = false;
    zone_number_++;
    const gpu::Runtime& runtime = *gpu::runtime();
    Zone& own = zones_[index(context_.rank())];
    own.device = std::hash<std::string>()(runtime.pci_address(context_.device));
    own.is_in_turns = runtime.gives_turns(context_.device);
    ExchangeOffer& offer = context_.segment->slot(context_.rank()).exchange_offer;
    offer.zone = zone_->exported;
    offer.device = own.device;
    offer.in_turns = own.is_in_turns ? 1 : 0;
}

// A peer may have told of another zone in a call in which this rank, with host memory, has mapped none.
bool KernelExchange::has_mapped_all() const
{
    for (int peer = 0; peer < context_.size(); peer++) {
        const Zone& zone = zones_[index(peer)];
        const std::uint64_t told =
            context_.segment->slot(peer).exchange.load(std::memory_order_acquire);
        const std::uint32_t number = Signal::count(told, Signal::sequence(told)) >> zone_at;
        if (peer != context_.rank() && (zone.mapping == nullptr || zone.number != number))
            return false;
    }
    return true;
}

bool KernelExchange::is_ready() const
{
    return zone_ != nullptr && zone_->device == context_.device && !is_in_turns_ &&
           has_mapped_all() && block_.slice.length <= max_block(context_.size());
}

// Each push takes the CPU some 3 us to start, so with many peers the two copies are no slower. Ranks that share a device
// wait for each other's copies. And an own block that is not in place takes a copy inside the device, which may wait as
// long as a kernel.
bool KernelExchange::can_push()
{
    constexpr int most = 4;
    return context_.size() <= most && !is_device_shared_ && block_.from == Place::receive &&
           offer_.is_for_engines();
}

void KernelExchange::enter(const Transfer& block)
{
    block_ = block;
    is_running_ = false;
    release();
    const std::uint32_t number = zone_number_;
    const bool may = has_device_buffers();
    if (may) renew_zone();
    const bool is_in_reach = may && number == zone_number_ && is_ready();
    can_ = is_in_reach &&
           ComputeUnits::of(context_.device).are_free(ComputeUnits::User::exchange) && reserve();
    can_push_ = is_in_reach && (!can_ || has_peer_pushed_) && can_push();
    NodeSlot& slot = context_.segment->slot(context_.rank());
    ExchangeOffer& offer = slot.exchange_offer;
    offer.shape = context_.binding.shape();
    offer.target = block.slice.target;
    offer.length = block.slice.length;
    offer.kernel = kernel_after(kernels_);
    const std::uint64_t sequence = context_.binding.sequence;
    slot.exchange.store(Signal::encode(sequence, encode(zone_number_, can_, can_push_)),
                        std::memory_order_release);
    enter_call(slot, sequence, offer.shape);
}

bool KernelExchange::has_entered() const
{
    const NodeSlot& slot = context_.segment->slot(context_.rank());
    return Signal::sequence(slot.exchange.load(std::memory_order_relaxed)) ==
           context_.binding.sequence;
}

// A peer that announces has decided that the ranks push. Or it takes this call for one of another kind: what the two say
// of their buffers will tell why. That word is read first, because a peer that has decided has written the other one before.
bool KernelExchange::has_said(const NodeSlot& slot, std::uint64_t sequence, std::uint32_t& what)
{
    const bool has_announced = slot.ready.load(std::memory_order_acquire) >= sequence;
    const std::uint64_t word = slot.exchange.load(std::memory_order_acquire);
    what = Signal::count(word, sequence);
    return has_announced || Signal::sequence(word) >= sequence;
}

Status KernelExchange::decide(Way& way)
{
    const std::uint64_t sequence = context_.binding.sequence;
    way = Way::open;
    bool can_all = can_, can_all_push = can_push_, has_peer_pushed = false;
    for (int peer = 0; peer < context_.size(); peer++) {
        std::uint32_t said = 0;
        if (!has_said(context_.segment->slot(peer), sequence, said)) return Status::ok;
        can_all = can_all && (said & by_kernel) != 0;
        can_all_push = can_all_push && (said & by_pushes) != 0;
        has_peer_pushed = has_peer_pushed || (peer != context_.rank() && (said & by_pushes) != 0);
    }
    const bool is_remembered = has_peer_pushed_ && block_.from != Place::receive;
    has_peer_pushed_ = !can_all && (has_peer_pushed || is_remembered);
    if (!can_all) {
        can_ = false;
        release();
        map_zones();
        way = can_all_push ? Way::pushes : Way::copies;
        return Status::ok;
    }
    for (int peer = 0; peer < context_.size(); peer++) {
        const Status status = check(peer);
        if (failed(status)) return status;
    }
    way = Way::kernel;
    return Status::ok;
}

// The peers have told of their zones, and write nothing else there until this rank has put its block.
void KernelExchange::map_zones()
{
    if (zone_ == nullptr) return;
    for (int peer = 0; peer < context_.size(); peer++) {
        const NodeSlot& slot = context_.segment->slot(peer);
        const std::uint64_t word = slot.exchange.load(std::memory_order_acquire);
        const std::uint32_t number = Signal::count(word, context_.binding.sequence) >> zone_at;
        Zone& zone = zones_[index(peer)];
        if (peer == context_.rank() || number == 0 || number == zone.number) continue;
        if (zone.mapping != nullptr) PeerMappings::instance().release(zone.mapping);
        zone = {number, slot.exchange_offer.device, slot.exchange_offer.in_turns != 0, nullptr};
        const ExportedMemory memory = slot.exchange_offer.zone;
        std::atomic_signal_fence(std::memory_order_seq_cst);  // what follows reads the copy
        if (const char* fault = fault_of_zone(memory, Exchange::zone_bytes(ranks()));
            fault != nullptr)
            log(HIER_LOG_ERROR, "node rank %d lends %s", peer, fault);
        else if (failed(PeerMappings::instance().acquire(memory, zone_->device, zone.mapping)))
            log(HIER_LOG_INFO,
                "node rank %d's zone cannot be mapped: small blocks go without kernels", peer);
    }
    find_turns();
}

void KernelExchange::find_turns()
{
    std::set<std::uint64_t> devices;
    bool are_in_turns = false;
    for (const Zone& zone : zones_) {
        devices.insert(zone.device);
        are_in_turns = are_in_turns || zone.is_in_turns;
    }
    is_device_shared_ = devices.size() < zones_.size();
    is_in_turns_ = are_in_turns && is_device_shared_;
}

Status KernelExchange::check(int peer) const
{
    const ExchangeOffer& offer = context_.segment->slot(peer).exchange_offer;
    const Binding& binding = context_.binding;
    if (offer.shape != binding.shape() || offer.length != block_.slice.length)
        return refuse_shape(binding.shape(), offer.shape, "node", peer);
    if (offer.kernel == kernel_after(kernels_)) return Status::ok;
    log(HIER_LOG_ERROR, "node rank %d counts another number of kernels", peer);
    return Status::mismatch;
}

// Kernels of ranks that share a device wait for each other longer.
ComputeUnits::Clock::duration KernelExchange::patience() const
{
    return std::chrono::microseconds(50) * (is_device_shared_ ? context_.size() : 1);
}

Status KernelExchange::launch()
{
    const Binding& binding = context_.binding;
    Exchange e{};
    e.rank = static_cast<std::uint32_t>(context_.rank());
    e.ranks = ranks();
    e.bytes = static_cast<std::uint32_t>(block_.slice.length);
    const std::uint64_t kernel = kernel_after(kernels_);
    e.flag = static_cast<std::uint32_t>(kernel);
    e.is_next = zone_has_last_ && kernel == kernels_ + 1 ? 1 : 0;
    e.stride = static_cast<std::uint32_t>(Exchange::words_of(e.ranks));
    e.block = reinterpret_cast<const unsigned char*>(context_.source(block_));
    e.zone = reinterpret_cast<std::uint64_t*>(zone_->base);
    e.control = control();
    for (std::uint32_t r = 0; r < e.ranks; r++) {
        const int peer = static_cast<int>(r);
        const std::uint64_t target = context_.segment->slot(peer).exchange_offer.target;
        if (!fits(target, e.bytes, binding.receive.length)) {
            log(HIER_LOG_ERROR, "node rank %d puts bytes beyond the end of the receive buffer",
                peer);
            return Status::mismatch;
        }
        e.into[r] = reinterpret_cast<unsigned char*>(binding.receive.base + target);
        const PeerMappings::Mapping* mapping = zones_[r].mapping;
        if (mapping != nullptr)
            e.to[r] =
                reinterpret_cast<std::uint64_t*>(mapping->base) + std::size_t{e.rank} * e.stride;
    }
    const Status status = context_.queue->exchange(e, ticket_);
    has_hung_ = has_hung_ || status == Status::timed_out;
    is_running_ = status == Status::ok;
    if (is_running_) {
        watch_.begin(context_.device, ComputeUnits::User::exchange, patience());
        kernels_ = kernel;
        zone_has_last_ = true;
    }
    return status;
}

Status KernelExchange::reached()
{
    if (!is_running_) return Status::ok;
    const Status status = context_.queue->reached(ticket_);
    has_hung_ = has_hung_ || status == Status::timed_out;
    is_running_ = status == Status::in_progress;
    if (is_running_) watch_.look();
    if (status == Status::ok) watch_.end();
    if (status == Status::ok && !context_.raised) can_ = false;  // the words of all peers are here
    if (failed(status)) context_.queue->stop_exchange();
    if (!is_running_) release();
    return status;
}

void KernelExchange::stop()
{
    if (is_running_)
        context_.queue->stop_exchange();
    else
        release();
}

}  // namespace hier
