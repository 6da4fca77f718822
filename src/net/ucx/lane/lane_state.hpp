// SPDX-License-Identifier: BSD-3-Clause
// The state that the parts of a lane share. All of it is used under the worker's mutex, except for the words that
// peers and NICs write.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "hier/transport.hpp"
#include "net/network_transport.hpp"
#include "net/ucx/lane/rail_board.hpp"
#include "net/ucx/ucx_memory.hpp"
#include "net/ucx/ucx_worker.hpp"

namespace hier {

struct LanePeer {
    ucp_ep_h endpoint = nullptr;  // none until a route first needs the peer
    // These say which rank may write on the other's board. wireup.hpp draws their order.
    bool has_greeted = false;      // the peer has an endpoint to us
    bool is_welcome = false;       // it may write on our board, and says goodbye
    bool has_welcomed_us = false;  // we may write on its board ...
    bool is_open = false;          // ... and have told it what was kept back
    std::uint64_t asked_in =
        0;                      // the last collective that this rank wanted to announce to the peer
    std::uint64_t board = 0;    // address of our slot on the peer's board
    std::uint64_t failure = 0;  // address of its failure word
    std::uint64_t sink = 0;     // number of its inbox, at its worker
    UcxRemoteKey board_key;
    std::uint64_t let_in = 0;  // the last collective that this rank has announced to the peer
    std::uint64_t told = 0;    // version of our announcement that the peer has
    std::uint64_t known = 0;   // version of the peer's announcement that buffer_key is for
    UcxRemoteKey buffer_key;
    // The rest belongs to the same version. In a bounce buffer `buffer` is the place of this rank.
    std::uint64_t buffer = 0;
    std::uint64_t home = 0;
    bool is_bounce = false;
    std::uint64_t shape = 0;        // CallShape
    std::uint64_t last_signal = 0;  // sent to the peer
    std::uint64_t parts = 0;        // the same: RailSlot::parts
    std::uint64_t seen_ready = 0;   // of our slot for it: LaneState::read()
    std::uint64_t seen_arrivals = 0;
    std::uint64_t called = 0;  // highest eager call that the peer is in
    std::uint64_t got = 0;     // Signal: of its messages
    bool lost = false;         // a transfer has failed: a later signal would count it as arrived
};

struct LaneState {
    std::shared_ptr<UcxWorker> worker;
    RailBoard board;
    std::vector<bool> is_partner;
    std::vector<LanePeer> peers;
    std::vector<int> connected = {};  // the peers with an endpoint; has room for all
    bool has_news = false;            // a peer has greeted or welcomed us
    Binding binding = {};             // of the collective that runs, or ran last
    bool is_bound = false;            // a collective is running
    bool is_leaving = false;          // retired: it has no op any more
    Status own_failure = Status::ok;  // of something that no op waits for
    std::uint64_t parts_seen = 0;     // in all slots

    LanePeer& peer(int i) { return peers[static_cast<std::size_t>(i)]; }
    const LanePeer& peer(int i) const { return peers[static_cast<std::size_t>(i)]; }
    RailSlot& slot(int i) { return board.slot(static_cast<std::size_t>(i)); }

    // Has a peer raised a failure?
    bool has_failed() { return RailBoard::read(board.failure()) != 0; }

    // A word of our board, not under the mutex. Over TCP another thread may store words, behind their
    // data, by plain copies. A thread that sees a new word sees what came before it once it has had the
    // lock. `seen`: the word at the last call.
    std::uint64_t read(std::uint64_t& word, std::uint64_t& seen)
    {
        const std::uint64_t now = RailBoard::read(word);
        if (now != seen) {
            const std::lock_guard lock(worker->mutex());
            seen = now;
        }
        return now;
    }
    // The puts of a peer that it has signalled in this collective. Not under the mutex.
    std::uint32_t landed(std::size_t i)
    {
        return Signal::count(read(board.slot(i).arrivals, peers[i].seen_arrivals),
                             binding.sequence);
    }
};

// The speed of one put on the lane's device, as UCX expects it; {} where UCX does not say. The lane is
// connected.
NetworkRate rate_of(const LaneState& lane);

}  // namespace hier
