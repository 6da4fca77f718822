// SPDX-License-Identifier: BSD-3-Clause
// The order in which a rank turns to the others of its group: first the one behind it. So in each step
// every rank turns to another one.
#pragma once

#include <algorithm>
#include <vector>

namespace hier {

inline std::vector<int> staggered(std::vector<int> peers, int self, int size)
{
    const auto distance = [&](int peer) { return (peer - self + size) % size; };
    std::sort(peers.begin(), peers.end(), [&](int a, int b) { return distance(a) < distance(b); });
    return peers;
}

}  // namespace hier
