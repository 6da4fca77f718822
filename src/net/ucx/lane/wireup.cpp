// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/lane/wireup.hpp"

#include <chrono>
#include <utility>

#include "base/error.hpp"
#include "net/devices/tcp_probe.hpp"
#include "net/ucx/lane/ucx_lane.hpp"
#include "net/ucx/ucx_config.hpp"
#include "team/group.hpp"

namespace hier {
namespace {

// All ranks have the same bytes, so all throw or none.
std::vector<BoardAddress> parse_boards(const std::vector<std::vector<std::byte>>& told)
{
    std::vector<BoardAddress> boards;
    for (std::size_t i = 0; i < told.size(); i++) {
        auto board = parse_board(told[i]);
        if (!board) throw SetupError(format("rail rank %zu sends no address of a board", i));
        boards.push_back(std::move(*board));
    }
    return boards;
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
    self_ = static_cast<std::uint64_t>(group.rank());
    std::vector<std::byte> mine;
    const NetworkChoice& choice = state_.worker->choice();
    const TcpProbe probe(is_tcp(choice) ? choice.devices : "");
    group.agree("packing the rail board's key", [&] {
        BoardAddress board{reinterpret_cast<std::uint64_t>(&state_.board.failure()), inbox,
                           probe.address(), next_partner()};
        const std::lock_guard lock(state_.worker->mutex());
        check(state_.board.memory().pack_key(board.key), "packing the rail board's key");
        board.worker = state_.worker->address();
        mine = bytes_of(board);
    });
    told_ = parse_boards(group.collect_bytes(mine));
    // Before anybody connects: UCX ends a process that has no room for those who do.
    is_known_ = true;
    try {
        group.agree("room for the rail's connections", [&] {
            note_first();
            require_room();
        });
    } catch (const ExchangeFailure&) {  // not on all, maybe
        throw;
    } catch (...) {
        is_known_ = false;
        throw;
    }
    group.agree("connecting the rail", [&] {
        reach_next();
        connect_first();
    });
}

// In staggered order. This rank itself: it has no partner.
std::size_t Wireup::next_partner() const
{
    const std::size_t size = state_.peers.size();
    std::size_t next = (self_ + 1) % size;
    while (next != self_ && !state_.is_partner[next]) next = (next + 1) % size;
    return next;
}

// The next partner, and those whose next one this rank is. They do the same, so nobody has to ask: from now on
// they may write on our board, even if we should fail to connect. What will never be needed is dropped.
void Wireup::note_first()
{
    const std::size_t size = state_.peers.size(), next = next_partner();
    const std::lock_guard lock(state_.worker->mutex());
    for (std::size_t i = 1; i < size; i++) {
        const std::size_t peer = (self_ + i) % size;
        if (!state_.is_partner[peer]) {
            told_[peer] = {};
        } else if (peer == next || told_[peer].next == self_) {
            first_.push_back(static_cast<int>(peer));
            LanePeer& known = state_.peers[peer];
            known.has_greeted = known.is_welcome = true;
            known.has_welcomed_us = known.is_open = true;
        }
    }
}

void Wireup::connect_first()
{
    const std::lock_guard lock(state_.worker->mutex());
    for (const int peer : first_) connect_to(static_cast<std::size_t>(peer));
}

void Wireup::connect_to(std::size_t i)
{
    const BoardAddress& board = told_[i];
    LanePeer& peer = state_.peers[i];
    ucp_ep_h endpoint = state_.worker->connect(board.worker);
    check(peer.board_key.unpack(endpoint, board.key), "unpacking the key of a rail peer's board");
    peer.failure = board.address;
    peer.sink = board.sink;
    peer.board = board.address + (1 + self_) * sizeof(RailSlot);
    peer.endpoint = endpoint;
    state_.connected.push_back(static_cast<int>(i));
    told_[i] = {};
}

void Wireup::reach(int peer)
{
    connect_to(static_cast<std::size_t>(peer));
    const Status sent =
        flights_.send_message(peer, Flight::no_op, {.sequence = MessageHead::hello}, nullptr, 0);
    if (failed(sent)) throw SetupError("no word can be sent; " + state_.worker->doubt());
    welcome(peer);
}

void Wireup::welcome(int peer)
{
    LanePeer& known = state_.peer(peer);
    if (!known.has_greeted || known.is_welcome) return;
    known.is_welcome = true;
    (void)flights_.send_message(peer, Flight::no_op, {.sequence = MessageHead::welcome}, nullptr,
                                0);
}

// Over TCP a connection takes a descriptor at each end, and both ends may make one.
void Wireup::require_room() const
{
    constexpr std::size_t of_connection = 2, of_ours = 8;
    if (!is_tcp(state_.worker->choice())) return;
    const std::lock_guard lock(state_.worker->mutex());
    std::size_t fresh = 0;
    for (std::size_t i = 0; i < state_.peers.size(); i++)
        fresh += state_.is_partner[i] && !state_.worker->is_connected(told_[i].worker) ? 1 : 0;
    if (fresh > 0) require_descriptors(of_connection * fresh + of_ours);
}

// The next partner stands for all of them.
void Wireup::reach_next() const
{
    constexpr std::chrono::seconds bound{10};
    const std::size_t next = next_partner();
    if (next == self_) return;
    {
        const std::lock_guard lock(state_.worker->mutex());
        if (state_.worker->is_connected(told_[next].worker)) return;
    }
    const std::string cause = TcpProbe::reach(told_[next].probe, bound);
    if (!cause.empty())
        throw SetupError(format("rail rank %zu cannot be reached: %s; %s", next, cause.c_str(),
                                state_.worker->doubt().c_str()));
}

// A first signal to and from every peer that is connected. A network that does not work shows here, while
// there still is a fallback.
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
    for (const int i : first_) {
        while (!lane_.idle() || RailBoard::read(state_.slot(i).arrivals) == 0) {
            if (failed(lane_.progress(ignore))) {
                throw SetupError(format("rail rank %d cannot be reached; %s", i,
                                        state_.worker->doubt().c_str()));
            }
            if (keep_alive != nullptr) keep_alive();
            if (std::chrono::steady_clock::now() > end) {
                throw SetupError(format("no word from rail rank %d within %lld s; %s", i,
                                        static_cast<long long>(bound.count()),
                                        state_.worker->doubt().c_str()));
            }
        }
    }
}

// The drain behind it is a message of call 0. The peer waits for the word alone, so the drain may come later,
// even after the peer's first calls.
void Wireup::send_greetings()
{
    constexpr std::uint64_t greeting = Signal::encode(0, 1);
    for (const int peer : first_) {
        Status sent = Status::ok;
        {
            const std::lock_guard lock(state_.worker->mutex());
            state_.peer(peer).last_signal = greeting;
            sent = flights_.send_word(peer, Flight::no_op, offsetof(RailSlot, arrivals), greeting);
        }
        if (failed(sent) || failed(lane_.drain(peer, Flight::no_op))) {
            throw SetupError(
                format("rail rank %d cannot be reached; %s", peer, state_.worker->doubt().c_str()));
        }
    }
}

}  // namespace hier
