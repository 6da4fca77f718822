// SPDX-License-Identifier: BSD-3-Clause
// Puts to a peer over several lanes: put `count`, from 1, belongs to stripe (count - 1) mod stripes, and
// stripe s takes lane (first + s) mod lanes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hier/transport.hpp"

namespace hier {

constexpr std::size_t stripe_of(std::uint32_t count, std::size_t stripes)
{
    return (count - 1) % stripes;
}
// The highest count up to which this stripe lacks no put. `highest` is the last count that has arrived
// in the stripe, 0 for none.
constexpr std::uint32_t unbroken(std::uint32_t highest, std::uint32_t stripe, std::uint32_t stripes)
{
    return highest == 0 ? stripe : highest + stripes - 1;
}
// The last of the puts 1 to `count` that belongs to a stripe; 0: none.
constexpr std::uint32_t last_on(std::uint32_t count, std::uint32_t stripe, std::uint32_t stripes)
{
    return count <= stripe ? 0 : stripe + 1 + (count - 1 - stripe) / stripes * stripes;
}

// The lane of stripe 0 from one member of a rail to another. Neither the puts of a member to all others
// nor those of all others to it are all on one lane. A ring's puts begin on lane 0.
constexpr std::size_t first_lane(std::size_t from, std::size_t to, std::size_t members,
                                 std::size_t lanes)
{
    return (to + members - from - 1) % members % lanes;
}
// How many lanes a member uses for all others together, from lane 0 on.
constexpr std::size_t lanes_in_use(std::size_t members, std::size_t stripes, std::size_t lanes)
{
    const std::size_t all = members + stripes - 2;
    return all < lanes ? all : lanes;
}

// The lanes of a call. A call uses at most as many stripes as a shard has chunks; an eager one stays on
// lane 0.
class Stripes {
public:
    Stripes(std::size_t self, std::size_t members, std::size_t lanes)
        : self_(self), members_(members), lanes_(lanes)
    {
    }

    // The first so many lanes carry this call.
    std::size_t lanes_for(const Binding& binding) const
    {
        return binding.eager ? 1 : lanes_in_use(members_, stripes_for(binding), lanes_);
    }
    // This call runs from now on; the questions below are about it.
    void begin(const Binding& binding)
    {
        stripes_ = stripes_for(binding);
        active_ = lanes_for(binding);
    }
    // To and from a peer.
    std::size_t count() const { return stripes_; }
    std::size_t lanes() const { return active_; }
    std::size_t lane_to(int peer, std::size_t stripe) const
    {
        const auto to = static_cast<std::size_t>(peer);
        return (first_lane(self_, to, members_, active_) + stripe) % active_;
    }
    std::size_t lane_from(int peer, std::size_t stripe) const
    {
        const auto from = static_cast<std::size_t>(peer);
        return (first_lane(from, self_, members_, active_) + stripe) % active_;
    }
    // Does a lane carry puts to this peer, or announcements of where the peer may put?
    bool joins(int peer, std::size_t lane) const
    {
        for (std::size_t stripe = 0; stripe < stripes_; stripe++) {
            if (lane_to(peer, stripe) == lane || lane_from(peer, stripe) == lane) return true;
        }
        return false;
    }

private:
    std::size_t stripes_for(const Binding& binding) const
    {
        return binding.eager ? 1 : std::clamp<std::size_t>(binding.chunks, 1, lanes_);
    }

    std::size_t self_, members_;  // of the rail
    std::size_t lanes_;
    std::size_t stripes_ = 1;
    std::size_t active_ = 1;
};

}  // namespace hier
