// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/lane/lane_state.hpp"

#include <algorithm>

namespace hier {

NetworkRate rate_of(const LaneState& lane)
{
    const auto seconds = [](ucp_ep_h endpoint, std::size_t bytes) {
        ucp_ep_evaluate_perf_param_t message{};
        message.field_mask = UCP_EP_PERF_PARAM_FIELD_MESSAGE_SIZE;
        message.message_size = bytes;
        ucp_ep_evaluate_perf_attr_t estimate{};
        estimate.field_mask = UCP_EP_PERF_ATTR_FIELD_ESTIMATED_TIME;
        const ucs_status_t status = ucp_ep_evaluate_perf(endpoint, &message, &estimate);
        return status == UCS_OK ? estimate.estimated_time : 0;
    };
    const std::lock_guard lock(lane.worker->mutex());
    const auto peer = std::find_if(lane.peers.begin(), lane.peers.end(),
                                   [](const LanePeer& p) { return p.endpoint != nullptr; });
    if (peer == lane.peers.end()) return {};
    constexpr std::size_t small = 1 << 10, large = 64 << 20;
    const double first = seconds(peer->endpoint, small);
    const double second = seconds(peer->endpoint, large);
    if (first <= 0 || second <= first) return {};
    const double rate = static_cast<double>(large - small) / (second - first);
    return {rate, std::max(first - static_cast<double>(small) / rate, 0.0)};
}

}  // namespace hier
