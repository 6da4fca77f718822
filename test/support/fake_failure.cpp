// SPDX-License-Identifier: BSD-3-Clause
// The fake network after a failure.
#include <algorithm>

#include "fake_network.hpp"

namespace hier::test {

void FakeTransport::raise(Status status)
{
    if (raised_) blame("raised twice");
    raised_ = true;
    raised_at_ = std::chrono::steady_clock::now();
    if (group_.failure == Status::ok) group_.failure = status;
}

void FakeTransport::stop()
{
    if (!raised_) blame("stopped without a failure");
    if (stopped_) blame("stopped twice");
    if (!flights_.empty()) blame("stopped with transfers in flight");
    stopped_ = true;
    for (auto& receiver : group_.lanes) receiver[me_].stopped = true;
}

// A rank has said that it writes no more. From then on no transfer may need that rank.
bool FakeTransport::idle()
{
    const bool is_gone =
        std::all_of(group_.lanes.begin(), group_.lanes.end(),
                    [&](const auto& receiver) { return receiver[me_].road.empty(); });
    return flights_.empty() && (!stopped_ || is_gone);
}

bool FakeTransport::may_write(int peer, std::uint32_t count)
{
    if (!raised_) blame("may_write without a failure");
    if (is_publish()) return false;
    const Lane& lane = group_.lanes[me_][static_cast<std::size_t>(peer)];
    const auto& entered = to(peer).announced.sequence;
    if (lane.announced.sequence < binding_.sequence || lane.announced.is_bounce) return false;
    if (level_ == Level::node && entered < binding_.sequence) return false;
    const bool has_stopped = lane.stopped && lane.is_empty();
    return !has_stopped && arrived(peer) < count;
}

}  // namespace hier::test
