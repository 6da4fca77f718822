// SPDX-License-Identifier: BSD-3-Clause
// The drawing of a case: {seed, case number} decide everything, so that a case can be run again alone.
#pragma once

#include "test/mpi/lib/pattern.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace hier_test::fuzz {

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(mix(seed)) {}

    std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15ULL); }
    // A number below the limit.
    unsigned below(unsigned limit) { return static_cast<unsigned>(next() % limit); }
    int number_below(int limit) { return static_cast<int>(below(static_cast<unsigned>(limit))); }
    // Both bounds may be drawn.
    std::size_t between(std::size_t least, std::size_t most)
    {
        return least + next() % (most - least + 1);
    }
    bool one_in(unsigned times) { return below(times) == 0; }

private:
    std::uint64_t state_;
};

struct Case {
    std::uint64_t seed;
    std::uint64_t number;

    std::uint64_t key() const { return mix(seed, number); }
    // What all ranks draw alike, and what each rank draws for itself.
    Random common() const { return Random(key()); }
    Random local(int rank) const
    {
        return Random(mix(key(), static_cast<std::uint64_t>(rank) + 1));
    }
    // The number of the call whose Pattern the ranks send.
    int pattern() const { return static_cast<int>(key() & 0x7fffffff); }
};

}  // namespace hier_test::fuzz
