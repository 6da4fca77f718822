// SPDX-License-Identifier: BSD-3-Clause
#include "net/rail.hpp"

#include <algorithm>
#include <limits>
#include <mutex>

#include "base/error.hpp"
#include "base/log.hpp"
#include "hier/hier.h"
#include "net/quarantine.hpp"
#include "net/ucx/ucx_config.hpp"
#include "net/ucx/ucx_lane.hpp"

namespace hier {
namespace {

Quarantine& quarantine()
{
    static Quarantine instance;
    return instance;
}

// Without the first there is no rail. What a process may lock at most is for one.
std::size_t usable(const std::vector<NetworkChoice>& choices)
{
    if (max_registered(choices[0]) < std::numeric_limits<std::size_t>::max()) return 1;
    const auto end = std::find_if(choices.begin() + 1, choices.end(),
                                  [](const auto& choice) { return quarantine().contains(choice); });
    return static_cast<std::size_t>(end - choices.begin());
}

}  // namespace

Rail::Rail(const Group& group, const std::vector<NetworkChoice>& choices,
           const std::vector<bool>& is_partner, const RailSettings& settings)
    : me_(static_cast<std::size_t>(group.rank())), members_(static_cast<std::size_t>(group.size()))
{
    const auto counts = group.collect(usable(choices));
    const std::size_t most = *std::min_element(counts.begin(), counts.end());
    drains_.reserve(is_partner.size());
    lanes_.push_back(open(group, choices[0], is_partner, settings));
    while (lanes_.size() < most) {
        const NetworkChoice& choice = choices[lanes_.size()];
        try {
            lanes_.push_back(open(group, choice, is_partner, settings));
        } catch (const SetupError& e) {  // on all of the group, so all stop here
            log(HIER_LOG_INFO, "%s is left out: %s", choice.devices.c_str(), e.what());
            break;
        }
    }
}

Rail::~Rail() = default;

LanePointer Rail::open(const Group& group, const NetworkChoice& choice,
                       const std::vector<bool>& is_partner, const RailSettings& settings) const
{
    try {
        return connect(group, choice, is_partner, settings);
    } catch (const SetupError&) {  // on all of the group
        quarantine().add(choice);
        UcxWorker::drop_unused(choice);
        throw;
    }
}

LanePointer Rail::connect(const Group& group, const NetworkChoice& choice,
                          const std::vector<bool>& is_partner, const RailSettings& settings) const
{
    std::shared_ptr<UcxWorker> worker;
    RailBoard board;
    try {
        group.agree("opening the network", [&] {
            if (quarantine().contains(choice))
                throw KnownFailure(format("device \"%s\" could not be connected in the last %d min",
                                          choice.devices.c_str(),
                                          static_cast<int>(Quarantine::duration.count())));
            worker = UcxWorker::get(choice);
            const std::lock_guard lock(worker->mutex());
            board = RailBoard(worker->context(), is_partner.size());
        });
    } catch (...) {  // another rank's failure, maybe
        if (worker) {
            const std::lock_guard lock(worker->mutex());
            const RailBoard gone = std::move(board);
        }
        throw;
    }
    LanePointer lane;
    group.agree("making a rail", [&] {
        lane.reset(new UcxLane(worker, std::move(board), is_partner, settings.depth));
        if (settings.gpu != nullptr) lane->allow_direct(settings.gpu_direct, *settings.gpu);
    });
    lane->connect(group, settings.keep_alive);
    return lane;
}

// Puts of ours, or announcements of where the peer may put.
bool Rail::joins(int peer, std::size_t lane) const
{
    for (std::size_t turn = 0; turn < turns_; turn++) {
        if (lane_to(peer, turn) == lane || lane_from(peer, turn) == lane) return true;
    }
    return false;
}

void Rail::keep(const std::shared_ptr<const void>& memory)
{
    for (const auto& lane : lanes_) lane->keep(memory);
}

std::size_t Rail::turns_for(const Binding& binding) const
{
    return binding.eager ? 1 : std::clamp<std::size_t>(binding.chunks, 1, lanes_.size());
}

std::size_t Rail::lanes_for(const Binding& binding) const
{
    return binding.eager ? 1 : lanes_in_use(members_, turns_for(binding), lanes_.size());
}

std::size_t Rail::lane_to(int peer, std::size_t turn) const
{
    const auto to = static_cast<std::size_t>(peer);
    return (first_lane(me_, to, members_, active_) + turn) % active_;
}

std::size_t Rail::lane_from(int peer, std::size_t turn) const
{
    const auto from = static_cast<std::size_t>(peer);
    return (first_lane(from, me_, members_, active_) + turn) % active_;
}

bool Rail::register_buffers(const Binding& binding)
{
    const auto used = static_cast<std::ptrdiff_t>(lanes_for(binding));
    return std::all_of(lanes_.begin(), lanes_.begin() + used,
                       [&](const auto& lane) { return lane->register_buffers(binding); });
}

// Messages take the first lane.
bool Rail::register_sources(const Binding& binding, bool is_passed_on)
{
    return lanes_.front()->register_sources(binding, is_passed_on);
}

const std::string& Rail::device_memory() const { return lanes_.front()->device_memory(); }

bool Rail::reaches_devices() const
{
    return std::all_of(lanes_.begin(), lanes_.end(),
                       [](const auto& lane) { return lane->reaches_devices(); });
}

bool Rail::is_in_order() const { return lanes_.front()->is_in_order(); }

NetworkChoice Rail::choice() const
{
    NetworkChoice all = lanes_.front()->choice();
    for (std::size_t i = 1; i < lanes_.size(); i++)
        all.devices += ',' + lanes_[i]->choice().devices;
    return all;
}

bool Rail::is_rdma() const { return hier::is_rdma(choice()); }

int Rail::max_in_flight() const { return hier::max_in_flight(choice()); }

std::size_t Rail::max_bytes() const { return max_registered(choice()); }

std::string Rail::name() const
{
    const NetworkChoice all = choice();
    return "UCX " + all.transports + " on " + all.devices;
}

NetworkRate Rail::network_rate() const
{
    NetworkRate slowest = lanes_.front()->network_rate();
    for (const auto& lane : lanes_) {
        const NetworkRate own = lane->network_rate();
        slowest.rate = std::min(slowest.rate, own.rate);
        slowest.latency = std::max(slowest.latency, own.latency);
    }
    return slowest;
}

Status Rail::begin(const Binding& binding)
{
    turns_ = turns_for(binding);
    active_ = lanes_for(binding);
    drains_.clear();
    // All of them, whatever one says: each is asked later who may still write.
    Status all = Status::ok;
    for (std::size_t i = 0; i < active_; i++) {
        const Status status = lanes_[i]->begin(binding);
        if (!failed(all)) all = status;
    }
    return all;
}

Status Rail::announce(int peer)
{
    for (std::size_t turn = 0; turn < turns_; turn++) {
        const Status status = lanes_[lane_from(peer, turn)]->announce(peer);
        if (failed(status)) return status;
    }
    return Status::ok;
}

// Messages take the first lane, and only calls with messages have ranks that enter.
Status Rail::enter(int peer) { return lanes_.front()->enter(peer); }

Status Rail::entered(int peer) { return lanes_.front()->entered(peer); }

Status Rail::announced(int peer)
{
    Status all = Status::ok;
    for (std::size_t turn = 0; turn < turns_; turn++) {
        const Status status = lanes_[lane_to(peer, turn)]->announced(peer);
        if (failed(status)) return status;
        if (status == Status::in_progress) all = status;
    }
    return all;
}

Status Rail::put(const Transfer& transfer)
{
    return lanes_[lane_to(transfer.peer, turn_of(transfer.count, turns_))]->put(transfer);
}

Status Rail::drain(int peer, std::uint32_t op)
{
    int left = 0;
    for (std::size_t i = 0; i < active_; i++) {
        if (!joins(peer, i)) continue;
        const Status status = lanes_[i]->drain(peer, op);
        if (failed(status)) return status;
        left += status == Status::in_progress ? 1 : 0;
    }
    if (left > 1) drains_.expect(op, left);
    return left > 0 ? Status::in_progress : Status::ok;
}

std::uint32_t Rail::arrived(int peer)
{
    const auto turns = static_cast<std::uint32_t>(turns_);
    std::uint32_t all = std::numeric_limits<std::uint32_t>::max();
    for (std::uint32_t i = 0; i < turns; i++)
        all = std::min(all, unbroken(lanes_[lane_from(peer, i)]->arrived(peer), i, turns));
    return all;
}

bool Rail::is_lost(int peer)
{
    return std::any_of(lanes_.begin(), lanes_.begin() + static_cast<std::ptrdiff_t>(active_),
                       [&](const auto& lane) { return lane->is_lost(peer); });
}

// Now and then those, too, that this call does not use: a peer may need an answer there.
Status Rail::progress(Completions& completions)
{
    constexpr unsigned passes_per_turn = 64;
    const std::size_t turned = ++passes_ % passes_per_turn == 0 ? lanes_.size() : active_;
    JoinedParts::Reports reports(drains_, completions);
    Status all = Status::ok;
    for (std::size_t i = 0; i < turned; i++) {
        const Status status = lanes_[i]->progress(reports);
        if (!failed(all)) all = status;
    }
    return all;
}

bool Rail::has_failed()
{
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [](const auto& lane) { return lane->has_failed(); });
}

bool Rail::idle()
{
    return std::all_of(lanes_.begin(), lanes_.begin() + static_cast<std::ptrdiff_t>(active_),
                       [](const auto& lane) { return lane->idle(); });
}

void Rail::end()
{
    for (const auto& lane : lanes_) lane->end();
}

void Rail::tell(std::uint32_t heartbeat) { lanes_.front()->tell(heartbeat); }

std::uint32_t Rail::heard() { return lanes_.front()->heard(); }

// On all: the first, at which every call looks, may be the one that has failed.
void Rail::raise(Status status)
{
    for (const auto& lane : lanes_) lane->raise(status);
}

void Rail::stop()
{
    for (const auto& lane : lanes_) lane->stop();
}

bool Rail::may_write(int peer, std::uint32_t count)
{
    const auto turns = static_cast<std::uint32_t>(turns_);
    for (std::uint32_t i = 0; i < turns; i++) {
        const std::uint32_t due = last_on(count, i, turns);
        if (due > 0 && lanes_[lane_from(peer, i)]->may_write(peer, due)) return true;
    }
    return false;
}

}  // namespace hier
