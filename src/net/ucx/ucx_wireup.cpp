// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a rail find one another.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "net/devices/tcp_probe.hpp"
#include "net/ucx/ucx_config.hpp"
#include "net/ucx/ucx_lane.hpp"

namespace hier {
namespace {

struct BoardAddress {
    std::uint64_t address;
    std::uint64_t sink;
    TcpProbe::Address probe;
    std::uint64_t worker_bytes;  // what follows: the worker's address, then the board's key
};

template <class T> const std::byte* bytes_of(const T& value)
{
    return reinterpret_cast<const std::byte*>(&value);
}

BoardAddress head_of(const std::vector<std::byte>& told)
{
    BoardAddress head;
    std::memcpy(&head, told.data(), sizeof head);
    return head;
}

std::vector<std::byte> worker_address(const std::vector<std::byte>& told)
{
    const std::byte* worker = told.data() + sizeof(BoardAddress);
    return {worker, worker + head_of(told).worker_bytes};
}

}  // namespace

void UcxLane::connect(const Group& group, void (*keep_alive)())
{
    try {
        exchange_boards(group);
        greet(group, keep_alive);
    } catch (...) {
        if (is_known_) worker_->keep();
        throw;
    }
}

void UcxLane::exchange_boards(const Group& group)
{
    std::vector<std::byte> mine;
    const TcpProbe probe(is_tcp(worker_->choice()) ? worker_->choice().devices : "");
    group.agree("packing the rail board's key", [&] {
        std::vector<std::byte> key;
        const std::lock_guard lock(worker_->mutex());
        check(board_.memory().pack_key(key), "packing the rail board's key");
        const auto& worker = worker_->address();
        const BoardAddress head{reinterpret_cast<std::uint64_t>(&board_.failure()), sink_,
                                probe.address(), worker.size()};
        mine.assign(bytes_of(head), bytes_of(head) + sizeof head);
        mine.insert(mine.end(), worker.begin(), worker.end());
        mine.insert(mine.end(), key.begin(), key.end());
    });
    const auto all = group.collect_bytes(mine);
    // Before anybody connects: whoever has no room for those who do is ended by UCX.
    is_known_ = true;
    try {
        group.agree("room for the rail's connections", [&] { require_room(all); });
    } catch (const ExchangeFailure&) {  // not on all, maybe
        throw;
    } catch (...) {
        is_known_ = false;
        throw;
    }
    group.agree("connecting the rail", [&] {
        reach_next(static_cast<std::size_t>(group.rank()), all);
        const std::lock_guard lock(worker_->mutex());
        for (std::size_t i = 0; i < peers_.size(); i++) {
            if (!is_partner_[i]) continue;
            const BoardAddress head = head_of(all[i]);
            Peer& peer = peers_[i];
            ucp_ep_h endpoint = worker_->connect(worker_address(all[i]));
            check(peer.board_key.unpack(endpoint, all[i].data() + sizeof head + head.worker_bytes),
                  "unpacking the key of a rail peer's board");
            peer.failure = head.address;
            peer.sink = head.sink;
            peer.board =
                head.address + (1 + static_cast<std::uint64_t>(group.rank())) * sizeof(RailSlot);
            peer.endpoint = endpoint;  // last: whoever has one can be written to
        }
    });
}

// Over TCP a connection takes a descriptor at each end, and both ends may make one.
void UcxLane::require_room(const std::vector<std::vector<std::byte>>& all) const
{
    constexpr std::size_t of_connection = 2, of_ours = 8;
    if (!is_tcp(worker_->choice())) return;
    const std::lock_guard lock(worker_->mutex());
    std::size_t fresh = 0;
    for (std::size_t i = 0; i < peers_.size(); i++)
        fresh += is_partner_[i] && !worker_->is_connected(worker_address(all[i])) ? 1 : 0;
    if (fresh > 0) require_descriptors(of_connection * fresh + of_ours);
}

// The next partner stands for all.
void UcxLane::reach_next(std::size_t self, const std::vector<std::vector<std::byte>>& all) const
{
    constexpr std::chrono::seconds bound{10};
    for (std::size_t i = 1; i < peers_.size(); i++) {
        const std::size_t next = (self + i) % peers_.size();
        if (!is_partner_[next]) continue;
        {
            const std::lock_guard lock(worker_->mutex());
            if (worker_->is_connected(worker_address(all[next]))) return;
        }
        const BoardAddress head = head_of(all[next]);
        const std::string cause = TcpProbe::reach(head.probe, bound);
        if (!cause.empty())
            throw SetupError(format("rail rank %zu cannot be reached: %s; %s", next, cause.c_str(),
                                    worker_->doubt().c_str()));
        return;
    }
}

// A first signal to and from every peer: what cannot be reached shows here, while there still is a
// fallback.
void UcxLane::greet(const Group& group, void (*keep_alive)())
{
    constexpr std::chrono::seconds bound{30};
    group.agree("sending a first signal on the rail", [&] { send_greetings(); });
    group.agree("a first signal on the rail", [&] {
        struct Ignore final : Completions {
            void complete(std::uint32_t, Status) override {}
        } ignore;
        const auto end = std::chrono::steady_clock::now() + bound;
        for (std::size_t i = 0; i < peers_.size(); i++) {
            if (!is_partner_[i]) continue;
            while (!idle() || RailBoard::read(board_.slot(i).arrivals) == 0) {
                if (failed(progress(ignore))) {
                    throw SetupError(
                        format("rail rank %zu cannot be reached; %s", i, worker_->doubt().c_str()));
                }
                if (keep_alive != nullptr) keep_alive();
                if (std::chrono::steady_clock::now() > end) {
                    throw SetupError(format("no word from rail rank %zu within %lld s; %s", i,
                                            static_cast<long long>(bound.count()),
                                            worker_->doubt().c_str()));
                }
            }
        }
    });
}

void UcxLane::send_greetings()
{
    constexpr std::uint64_t greeting = Signal::encode(0, 1);
    for (std::size_t i = 0; i < peers_.size(); i++) {
        if (!is_partner_[i]) continue;
        const int peer = static_cast<int>(i);
        Status sent = Status::ok;
        {
            const std::lock_guard lock(worker_->mutex());
            peers_[i].last_signal = greeting;
            sent = send_word(peer, no_op, offsetof(RailSlot, arrivals), greeting);
        }
        if (failed(sent) || failed(drain(peer, no_op))) {
            throw SetupError(
                format("rail rank %zu cannot be reached; %s", i, worker_->doubt().c_str()));
        }
    }
}

NetworkRate UcxLane::network_rate() const
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
    const std::lock_guard lock(worker_->mutex());
    const auto peer = std::find_if(peers_.begin(), peers_.end(),
                                   [](const Peer& p) { return p.endpoint != nullptr; });
    if (peer == peers_.end()) return {};
    constexpr std::size_t small = 1 << 10, large = 64 << 20;
    const double first = seconds(peer->endpoint, small);
    const double second = seconds(peer->endpoint, large);
    if (first <= 0 || second <= first) return {};
    const double rate = static_cast<double>(large - small) / (second - first);
    return {rate, std::max(first - static_cast<double>(small) / rate, 0.0)};
}

}  // namespace hier
