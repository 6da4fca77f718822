// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/lane/teardown.hpp"

#include <cstddef>

namespace hier {

void Teardown::flush()
{
    for (; flushed_peers_ < state_.connected.size(); flushed_peers_++) {
        const int peer = state_.connected[flushed_peers_];
        if (state_.peer(peer).is_open) flights_.flush_peer(peer);
    }
}

void Teardown::say_goodbye()
{
    for (; left_peers_ < state_.connected.size(); left_peers_++) {
        const int peer = state_.connected[left_peers_];
        if (is_in_order_ || !state_.peer(peer).is_open) {
            (void)flights_.send_message(peer, Flight::no_op, {.sequence = MessageHead::goodbye},
                                        nullptr, 0);
        } else {
            (void)flights_.send_word(peer, Flight::no_op, offsetof(RailSlot, goodbye), 1);
        }
    }
    has_said_goodbye_ = true;
}

// A peer that was never welcome on our board has not written there. One that was may have connected to us
// although we failed to connect to it.
bool Teardown::have_all_left()
{
    for (int i = 0; i < static_cast<int>(state_.peers.size()); i++) {
        const LanePeer& peer = state_.peer(i);
        const bool has_left = !peer.is_welcome || RailBoard::read(state_.slot(i).goodbye) != 0 ||
                              state_.worker->is_broken(peer.endpoint);
        if (!has_left) return false;
    }
    return true;
}

bool Teardown::step()
{
    state_.is_leaving = true;
    is_in_order_ = state_.worker->signal_order() == SignalOrder::by_lane;
    if (!is_in_order_) flush();
    if (!has_said_goodbye_ && (is_in_order_ || flights_.awaited() == 0)) say_goodbye();
    return has_said_goodbye_ && flights_.awaited() == 0 && have_all_left();
}

}  // namespace hier
