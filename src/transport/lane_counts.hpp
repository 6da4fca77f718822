// Puts to a peer over several lanes: put `count`, from 1, goes over lane (count - 1) mod lanes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hier {

// The puts of a peer that a lane has nothing missing of: `highest` is the count that has arrived on it
// last, 0 for none.
constexpr std::uint32_t unbroken(std::uint32_t highest, std::uint32_t lane, std::uint32_t lanes)
{
    return highest == 0 ? lane : highest + lanes - 1;
}
constexpr std::size_t lane_of(std::uint32_t count, std::size_t lanes)
{
    return (count - 1) % lanes;
}
// Of the puts 1 to `count`, the last that goes over a lane; 0: none.
constexpr std::uint32_t last_on(std::uint32_t count, std::uint32_t lane, std::uint32_t lanes)
{
    return count <= lane ? 0 : lane + 1 + (count - 1 - lane) / lanes * lanes;
}

}  // namespace hier
