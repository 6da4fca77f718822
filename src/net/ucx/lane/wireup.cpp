// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/lane/wireup.hpp"

#include <chrono>
#include <cstring>

#include "base/error.hpp"
#include "net/devices/tcp_probe.hpp"
#include "net/ucx/lane/ucx_lane.hpp"
#include "net/ucx/ucx_config.hpp"
#include "team/group.hpp"

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

void Wireup::connect(const Group& group, std::uint64_t inbox, void (*keep_alive)())
{
    try {
        exchange_boards(group, inbox);
        greet(group, keep_alive);
    } catch (...) {
        if (is_known_) state_.worker->keep();
        throw;
    }
}

void Wireup::exchange_boards(const Group& group, std::uint64_t inbox)
{
    std::vector<std::byte> mine;
    const NetworkChoice& choice = state_.worker->choice();
    const TcpProbe probe(is_tcp(choice) ? choice.devices : "");
    group.agree("packing the rail board's key", [&] {
        std::vector<std::byte> key;
        const std::lock_guard lock(state_.worker->mutex());
        check(state_.board.memory().pack_key(key), "packing the rail board's key");
        const auto& worker = state_.worker->address();
        const BoardAddress head{reinterpret_cast<std::uint64_t>(&state_.board.failure()), inbox,
                                probe.address(), worker.size()};
        mine.assign(bytes_of(head), bytes_of(head) + sizeof head);
        mine.insert(mine.end(), worker.begin(), worker.end());
        mine.insert(mine.end(), key.begin(), key.end());
    });
    const auto all = group.collect_bytes(mine);
    // Before anybody connects: UCX ends a process that has no room for those who do.
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
        connect_peers(group, all);
    });
}

void Wireup::connect_peers(const Group& group, const std::vector<std::vector<std::byte>>& all)
{
    const std::lock_guard lock(state_.worker->mutex());
    for (std::size_t i = 0; i < state_.peers.size(); i++) {
        if (!state_.is_partner[i]) continue;
        const BoardAddress head = head_of(all[i]);
        LanePeer& peer = state_.peers[i];
        ucp_ep_h endpoint = state_.worker->connect(worker_address(all[i]));
        check(peer.board_key.unpack(endpoint, all[i].data() + sizeof head + head.worker_bytes),
              "unpacking the key of a rail peer's board");
        peer.failure = head.address;
        peer.sink = head.sink;
        peer.board =
            head.address + (1 + static_cast<std::uint64_t>(group.rank())) * sizeof(RailSlot);
        peer.endpoint = endpoint;  // last: a peer with an endpoint can be written to
    }
}

// Over TCP a connection takes a descriptor at each end, and both ends may make one.
void Wireup::require_room(const std::vector<std::vector<std::byte>>& all) const
{
    constexpr std::size_t of_connection = 2, of_ours = 8;
    if (!is_tcp(state_.worker->choice())) return;
    const std::lock_guard lock(state_.worker->mutex());
    std::size_t fresh = 0;
    for (std::size_t i = 0; i < state_.peers.size(); i++)
        fresh +=
            state_.is_partner[i] && !state_.worker->is_connected(worker_address(all[i])) ? 1 : 0;
    if (fresh > 0) require_descriptors(of_connection * fresh + of_ours);
}

// The next partner stands for all of them.
void Wireup::reach_next(std::size_t self, const std::vector<std::vector<std::byte>>& all) const
{
    constexpr std::chrono::seconds bound{10};
    for (std::size_t i = 1; i < state_.peers.size(); i++) {
        const std::size_t next = (self + i) % state_.peers.size();
        if (!state_.is_partner[next]) continue;
        {
            const std::lock_guard lock(state_.worker->mutex());
            if (state_.worker->is_connected(worker_address(all[next]))) return;
        }
        const BoardAddress head = head_of(all[next]);
        const std::string cause = TcpProbe::reach(head.probe, bound);
        if (!cause.empty())
            throw SetupError(format("rail rank %zu cannot be reached: %s; %s", next, cause.c_str(),
                                    state_.worker->doubt().c_str()));
        return;
    }
}

// A first signal to and from every peer. A peer that cannot be reached shows here, while there still is
// a fallback.
void Wireup::greet(const Group& group, void (*keep_alive)())
{
    group.agree("sending a first signal on the rail", [&] { send_greetings(); });
    group.agree("a first signal on the rail", [&] { await_greetings(keep_alive); });
}

void Wireup::await_greetings(void (*keep_alive)())
{
    constexpr std::chrono::seconds bound{30};
    struct Ignore final : Completions {
        void complete(std::uint32_t, Status) override {}
    } ignore;
    const auto end = std::chrono::steady_clock::now() + bound;
    for (std::size_t i = 0; i < state_.peers.size(); i++) {
        if (!state_.is_partner[i]) continue;
        while (!lane_.idle() || RailBoard::read(state_.board.slot(i).arrivals) == 0) {
            if (failed(lane_.progress(ignore))) {
                throw SetupError(format("rail rank %zu cannot be reached; %s", i,
                                        state_.worker->doubt().c_str()));
            }
            if (keep_alive != nullptr) keep_alive();
            if (std::chrono::steady_clock::now() > end) {
                throw SetupError(format("no word from rail rank %zu within %lld s; %s", i,
                                        static_cast<long long>(bound.count()),
                                        state_.worker->doubt().c_str()));
            }
        }
    }
}

void Wireup::send_greetings()
{
    constexpr std::uint64_t greeting = Signal::encode(0, 1);
    for (std::size_t i = 0; i < state_.peers.size(); i++) {
        if (!state_.is_partner[i]) continue;
        const int peer = static_cast<int>(i);
        Status sent = Status::ok;
        {
            const std::lock_guard lock(state_.worker->mutex());
            state_.peers[i].last_signal = greeting;
            sent = flights_.send_word(peer, Flight::no_op, offsetof(RailSlot, arrivals), greeting);
        }
        if (failed(sent) || failed(lane_.drain(peer, Flight::no_op))) {
            throw SetupError(
                format("rail rank %zu cannot be reached; %s", i, state_.worker->doubt().c_str()));
        }
    }
}

}  // namespace hier
