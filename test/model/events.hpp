// SPDX-License-Identifier: BSD-3-Clause
// The events that may happen next, by speed. A slower event happens only when no faster one can.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "model.hpp"

namespace hier::model {

struct Event {
    enum class Kind : std::uint8_t {
        enter,         // rank
        op,            // rank, index into its plan
        copy,          // rank, index into its copies: a part of the copy is done
        done,          // rank, index: the copy is done, or the source of the put may be reused
        payload,       // index of a flight: a part of the put lands
        signal,        // index of a flight
        announcement,  // index: the word reaches the peer over the rail
    };
    Kind kind;
    int rank;
    std::uint32_t index;
};

class EventQueue {
public:
    EventQueue(const Schedule& schedule, int ranks)
        : schedule_(schedule), ranks_(static_cast<std::size_t>(ranks)),
          random_(schedule.seed * 2654435761U + 1)
    {
        if (schedule.kind != Schedule::Kind::priorities) return;
        speed_.resize(ranks_ + 2 * ranks_ * ranks_);
        for (auto& s : speed_) s = static_cast<std::uint8_t>(random_() % speeds);
    }

    void push_by_rank(Event event) { by_speed_[speed_of(event)].push_back(event); }
    void push_on(const Pair& pair, Event event) { by_speed_[speed_of(pair)].push_back(event); }

    // False: nothing can happen.
    bool pop(Event& event)
    {
        for (auto& events : by_speed_) {
            if (events.empty()) continue;
            auto& chosen = events[random(events.size())];
            event = chosen;
            chosen = events.back();
            events.pop_back();
            return true;
        }
        return false;
    }

    std::size_t random(std::size_t below) { return random_() % below; }

private:
    static constexpr std::size_t speeds = 5;

    std::size_t speed_of(const Event& event) const
    {
        const bool is_chosen = event.rank == schedule_.pair.from;
        if (schedule_.kind == Schedule::Kind::slow_rank) return is_chosen ? 1 : 0;
        if (schedule_.kind == Schedule::Kind::slow_op) {
            return is_chosen && event.kind == Event::Kind::op && event.index == schedule_.number
                       ? 1
                       : 0;
        }
        return speed_.empty() ? 0 : speed_[static_cast<std::size_t>(event.rank)];
    }

    std::size_t speed_of(const Pair& c) const
    {
        if (schedule_.kind == Schedule::Kind::slow_pair) return c == schedule_.pair ? 1 : 0;
        if (speed_.empty()) return 0;
        const auto level = static_cast<std::size_t>(c.level);
        const auto from = static_cast<std::size_t>(c.from);
        return speed_[ranks_ * (1 + level * ranks_ + from) + static_cast<std::size_t>(c.to)];
    }

    const Schedule& schedule_;
    std::size_t ranks_;
    std::minstd_rand random_;
    std::vector<std::uint8_t> speed_;  // first of the ranks, then of the pairs
    std::array<std::vector<Event>, speeds> by_speed_;
};

}  // namespace hier::model
