// SPDX-License-Identifier: BSD-3-Clause
// Puts to a peer over several lanes: put `count`, from 1, takes turn (count - 1) mod turns, and turn t
// is lane (first + t) mod lanes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hier {

constexpr std::size_t turn_of(std::uint32_t count, std::size_t turns)
{
    return (count - 1) % turns;
}
// The puts of a peer that a turn has nothing missing of: `highest` is the count that has arrived in it
// last, 0 for none.
constexpr std::uint32_t unbroken(std::uint32_t highest, std::uint32_t turn, std::uint32_t turns)
{
    return highest == 0 ? turn : highest + turns - 1;
}
// Of the puts 1 to `count`, the last that takes a turn; 0: none.
constexpr std::uint32_t last_on(std::uint32_t count, std::uint32_t turn, std::uint32_t turns)
{
    return count <= turn ? 0 : turn + 1 + (count - 1 - turn) / turns * turns;
}

// From one member of a rail to another, so that neither what a member sends to all others nor what it
// gets from them is all on one lane. A ring's puts begin on lane 0.
constexpr std::size_t first_lane(std::size_t from, std::size_t to, std::size_t members,
                                 std::size_t lanes)
{
    return (to + members - from - 1) % members % lanes;
}
// How many lanes that comes to, from 0 on, with all others.
constexpr std::size_t lanes_in_use(std::size_t members, std::size_t turns, std::size_t lanes)
{
    const std::size_t all = members + turns - 2;
    return all < lanes ? all : lanes;
}

}  // namespace hier
