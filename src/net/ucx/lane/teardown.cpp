// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/lane/teardown.hpp"

#include <cstddef>

namespace hier {

void Teardown::flush()
{
    const int peers = static_cast<int>(state_.peers.size());
    for (; flushed_peers_ < peers; flushed_peers_++) {
        if (state_.peer(flushed_peers_).endpoint != nullptr) flights_.flush_peer(flushed_peers_);
    }
}

void Teardown::say_goodbye()
{
    const int peers = static_cast<int>(state_.peers.size());
    for (; left_peers_ < peers; left_peers_++) {
        if (state_.peer(left_peers_).endpoint == nullptr) continue;
        if (is_in_order_) {
            (void)flights_.send_message(left_peers_, Flight::no_op,
                                        {.sequence = MessageHead::goodbye}, nullptr, 0);
        } else {
            (void)flights_.send_word(left_peers_, Flight::no_op, offsetof(RailSlot, goodbye), 1);
        }
    }
    has_said_goodbye_ = true;
}

bool Teardown::have_all_left()
{
    for (int i = 0; i < static_cast<int>(state_.peers.size()); i++) {
        const bool has_left = !state_.is_partner[static_cast<std::size_t>(i)] ||
                              RailBoard::read(state_.slot(i).goodbye) != 0 ||
                              state_.worker->is_broken(state_.peer(i).endpoint);
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
