// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/rail.hpp"

#include <algorithm>
#include <limits>

#include "net/staggered.hpp"
#include "net/ucx/lane/ucx_lane.hpp"

namespace hier {

Rail::Rail(int rank, int size, std::vector<LanePointer> lanes, NetworkTraits traits)
    : rank_(rank), size_(size), lanes_(std::move(lanes)), traits_(std::move(traits)),
      stripes_(static_cast<std::size_t>(rank), static_cast<std::size_t>(size), lanes_.size())
{
    drains_.reserve(static_cast<std::size_t>(size));
}

void Rail::keep(const std::shared_ptr<const void>& memory)
{
    for (const auto& lane : lanes_) lane->buffers().keep(memory);
}

bool Rail::register_buffers(const Binding& binding)
{
    const auto used = static_cast<std::ptrdiff_t>(stripes_.lanes_for(binding));
    return std::all_of(lanes_.begin(), lanes_.begin() + used,
                       [&](const auto& lane) { return lane->buffers().register_buffers(binding); });
}

// Messages take the first lane.
bool Rail::register_sources(const Binding& binding, bool is_passed_on)
{
    return lanes_.front()->buffers().register_sources(binding, is_passed_on);
}

bool Rail::has_failed()
{
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [](const auto& lane) { return lane->state().has_failed(); });
}

Status Rail::connect(std::vector<int> peers)
{
    for (const int peer : staggered(std::move(peers), rank_, size_)) {
        for (const auto& lane : lanes_) {
            const Status status = lane->reach(peer);
            if (failed(status)) return status;
        }
    }
    return Status::ok;
}

void Rail::answer_late()
{
    for (const auto& lane : lanes_) lane->answer_late();
}

Status Rail::begin(const Binding& binding)
{
    stripes_.begin(binding);
    drains_.clear();
    // All of them, whatever one says: may_write() asks each of them later.
    Status all = Status::ok;
    for (std::size_t i = 0; i < stripes_.lanes(); i++) {
        const Status status = lanes_[i]->begin(binding);
        if (!failed(all)) all = status;
    }
    return all;
}

Status Rail::announce(int peer)
{
    for (std::size_t stripe = 0; stripe < stripes_.count(); stripe++) {
        const Status status = lanes_[stripes_.lane_from(peer, stripe)]->announce(peer);
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
    for (std::size_t stripe = 0; stripe < stripes_.count(); stripe++) {
        const Status status = lanes_[stripes_.lane_to(peer, stripe)]->announced(peer);
        if (failed(status)) return status;
        if (status == Status::in_progress) all = status;
    }
    return all;
}

Status Rail::put(const Transfer& transfer)
{
    return lanes_[stripes_.lane_to(transfer.peer, stripe_of(transfer.count, stripes_.count()))]
        ->put(transfer);
}

Status Rail::drain(int peer, std::uint32_t op)
{
    int left = 0;
    for (std::size_t i = 0; i < stripes_.lanes(); i++) {
        if (!stripes_.joins(peer, i)) continue;
        const Status status = lanes_[i]->drain(peer, op);
        if (failed(status)) return status;
        left += status == Status::in_progress ? 1 : 0;
    }
    if (left > 1) drains_.expect(op, left);
    return left > 0 ? Status::in_progress : Status::ok;
}

std::uint32_t Rail::arrived(int peer)
{
    const auto stripes = static_cast<std::uint32_t>(stripes_.count());
    std::uint32_t all = std::numeric_limits<std::uint32_t>::max();
    for (std::uint32_t i = 0; i < stripes; i++)
        all =
            std::min(all, unbroken(lanes_[stripes_.lane_from(peer, i)]->arrived(peer), i, stripes));
    return all;
}

bool Rail::is_lost(int peer)
{
    return std::any_of(lanes_.begin(),
                       lanes_.begin() + static_cast<std::ptrdiff_t>(stripes_.lanes()),
                       [&](const auto& lane) { return lane->is_lost(peer); });
}

// A peer may need an answer on a lane that this call does not use. So those make progress now and then.
Status Rail::progress(Completions& completions)
{
    constexpr unsigned passes_per_round = 64;
    const std::size_t lanes = ++passes_ % passes_per_round == 0 ? lanes_.size() : stripes_.lanes();
    JoinedParts::Reports reports(drains_, completions);
    Status all = Status::ok;
    for (std::size_t i = 0; i < lanes; i++) {
        const Status status = lanes_[i]->progress(reports);
        if (!failed(all)) all = status;
    }
    return all;
}

bool Rail::idle()
{
    return std::all_of(lanes_.begin(),
                       lanes_.begin() + static_cast<std::ptrdiff_t>(stripes_.lanes()),
                       [](const auto& lane) { return lane->idle(); });
}

void Rail::end()
{
    for (const auto& lane : lanes_) lane->end();
}

void Rail::tell(std::uint32_t heartbeat) { lanes_.front()->tell(heartbeat); }

std::uint32_t Rail::heard() { return lanes_.front()->heard(); }

bool Rail::have_parts_come()
{
    bool have_come = false;
    for (const auto& lane : lanes_) have_come = lane->have_parts_come() || have_come;
    return have_come;
}

// On all lanes: lane 0, which every call watches, may be the one that has failed.
void Rail::raise(Status status)
{
    for (const auto& lane : lanes_) lane->failure().raise(status);
}

void Rail::stop()
{
    for (const auto& lane : lanes_) lane->failure().stop();
}

bool Rail::may_write(int peer, std::uint32_t count)
{
    const auto stripes = static_cast<std::uint32_t>(stripes_.count());
    for (std::uint32_t i = 0; i < stripes; i++) {
        const std::uint32_t due = last_on(count, i, stripes);
        if (due > 0 && lanes_[stripes_.lane_from(peer, i)]->may_write(peer, due)) return true;
    }
    return false;
}

}  // namespace hier
