// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/open_lanes.hpp"

#include <algorithm>
#include <limits>
#include <mutex>

#include "base/error.hpp"
#include "base/log.hpp"
#include "hier/hier.h"
#include "net/quarantine.hpp"
#include "net/ucx/lane/ucx_lane.hpp"
#include "net/ucx/ucx_config.hpp"
#include "net/ucx/ucx_workers.hpp"
#include "team/group.hpp"

namespace hier {
namespace {

Quarantine& quarantine()
{
    static Quarantine instance;
    return instance;
}

// Without the first device there is no rail. A limit on locked memory leaves room for one device only.
std::size_t usable(const std::vector<NetworkChoice>& choices, std::size_t members)
{
    if (max_registered(choices[0]) < std::numeric_limits<std::size_t>::max()) return 1;
    const auto end =
        std::find_if(choices.begin() + 1, choices.end(), [&](const NetworkChoice& choice) {
            return quarantine().contains(choice) ||
                   quarantine().contains(settle_transports(choice, members, true));
        });
    return static_cast<std::size_t>(end - choices.begin());
}

// As many choices as every member can use, with the transports that all members take.
std::vector<NetworkChoice> settle(const Group& group, const std::vector<NetworkChoice>& choices)
{
    struct Usable {
        std::uint64_t lanes;
        std::uint64_t dynamic;  // how many of the first ones may be dynamic connections alone
    };
    const auto first_other = std::find_if_not(choices.begin(), choices.end(), may_be_dynamic);
    const auto all =
        group.collect(Usable{usable(choices, static_cast<std::size_t>(group.size())),
                             static_cast<std::uint64_t>(first_other - choices.begin())});
    const auto least = [&](std::uint64_t Usable::*count) {
        std::uint64_t smallest = all.front().*count;
        for (const Usable& member : all) smallest = std::min(smallest, member.*count);
        return smallest;
    };
    std::vector<NetworkChoice> settled;
    for (std::size_t i = 0; i < least(&Usable::lanes); i++)
        settled.push_back(settle_transports(choices[i], all.size(), i < least(&Usable::dynamic)));
    return settled;
}

LanePointer connect(const NetworkSetup& setup, const NetworkChoice& choice)
{
    const Group& group = setup.group;
    std::shared_ptr<UcxWorker> worker;
    RailBoard board;
    try {
        group.agree("opening the network", [&] {
            if (quarantine().contains(choice))
                throw KnownFailure(format("device \"%s\" could not be connected in the last %d min",
                                          choice.devices.c_str(),
                                          static_cast<int>(Quarantine::duration.count())));
            worker = UcxWorkers::get(choice);
            const std::lock_guard lock(worker->mutex());
            board = RailBoard(worker->context(), setup.is_partner.size());
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
        lane.reset(new UcxLane(worker, std::move(board), setup.is_partner, setup.depth));
        if (setup.gpu != nullptr) lane->device_memory().allow(setup.config.gpu_direct, *setup.gpu);
    });
    lane->connect(group, setup.config.progress);
    return lane;
}

LanePointer open(const NetworkSetup& setup, const NetworkChoice& choice)
{
    try {
        return connect(setup, choice);
    } catch (const SetupError&) {  // on all of the group
        quarantine().add(choice);
        UcxWorkers::drop_unused(choice);
        throw;
    }
}

}  // namespace

std::vector<LanePointer> open_lanes(const NetworkSetup& setup,
                                    const std::vector<NetworkChoice>& choices)
{
    const std::vector<NetworkChoice> settled = settle(setup.group, choices);
    std::vector<LanePointer> lanes;
    lanes.push_back(open(setup, settled[0]));
    while (lanes.size() < settled.size()) {
        const NetworkChoice& choice = settled[lanes.size()];
        try {
            lanes.push_back(open(setup, choice));
        } catch (const SetupError& e) {  // on all of the group, so all stop here
            log(HIER_LOG_INFO, "%s is left out: %s", choice.devices.c_str(), e.what());
            break;
        }
    }
    return lanes;
}

NetworkTraits traits_of(const std::vector<LanePointer>& lanes)
{
    UcxLane& first = *lanes.front();
    NetworkChoice all = first.state().worker->choice();
    NetworkRate slowest = rate_of(first.state());
    bool reaches_devices = true;
    for (const LanePointer& lane : lanes) {
        if (lane != lanes.front()) all.devices += ',' + lane->state().worker->choice().devices;
        const NetworkRate own = rate_of(lane->state());
        slowest.rate = std::min(slowest.rate, own.rate);
        slowest.latency = std::max(slowest.latency, own.latency);
        reaches_devices = reaches_devices && lane->device_memory().is_reached();
    }
    return {.name = "UCX " + all.transports + " on " + all.devices,
            .devices = all.devices,
            .device_memory = first.device_memory().description(),
            .rate = slowest,
            .lanes = static_cast<int>(lanes.size()),
            .is_tcp = all.transports.find("tcp") != std::string::npos,
            .is_rdma = is_rdma(all),
            .is_in_order = first.state().worker->signal_order() != SignalOrder::by_flush,
            .reaches_devices = reaches_devices,
            .max_in_flight = max_in_flight(all),
            .max_bytes = max_registered(all)};
}

}  // namespace hier
