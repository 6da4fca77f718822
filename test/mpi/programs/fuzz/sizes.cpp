// SPDX-License-Identifier: BSD-3-Clause
#include "sizes.hpp"

#include <algorithm>

namespace hier_test::fuzz {

namespace {

// The value, or one beside it.
std::size_t around(Random& random, std::size_t value)
{
    constexpr std::size_t farther = 64;
    switch (random.below(5)) {
    case 0:
        return value - std::min<std::size_t>(value, 1);
    case 1:
        return value + 1;
    case 2:
        return value - std::min(value, random.between(1, farther));
    case 3:
        return value + random.between(1, farther);
    default:
        return value;
    }
}

// Small thresholds come more often than large ones, which take longer.
std::size_t threshold(Random& random)
{
    constexpr std::size_t kib = 1024;
    const unsigned drawn = random.below(32);
    return drawn < 10   ? 16 * kib
           : drawn < 18 ? 32 * kib
           : drawn < 25 ? 64 * kib
           : drawn < 30 ? 256 * kib
                        : 1024 * kib;
}

std::size_t draw(Random& random, int ranks)
{
    const unsigned drawn = random.below(400);
    if (drawn < 8) return 0;
    if (drawn < 24) return 1;
    if (drawn < 80) return random.between(2, 64);
    if (drawn < 180) return random.between(65, 4096);
    if (drawn < 260) return around(random, std::size_t{1} << random.between(1, 14));
    if (drawn < 310) return random.between(4097, 30000);
    if (drawn < 350) return around(random, threshold(random));
    if (drawn < 390) return around(random, threshold(random) / static_cast<std::size_t>(ranks));
    if (drawn < 398) return random.between(30001, 300000);
    return random.between(1 << 20, 6 << 20);
}

}  // namespace

std::size_t draw_bytes(Random& random, int ranks, std::size_t largest)
{
    return std::min(draw(random, ranks), largest);
}

}  // namespace hier_test::fuzz
