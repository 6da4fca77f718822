// SPDX-License-Identifier: BSD-3-Clause
// The shared memory that this process has mapped for its teams.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace bench {

// Bytes, each piece once.
inline std::size_t shared_bytes_of_node()
{
    std::ifstream maps("/proc/self/maps");
    std::size_t bytes = 0;
    std::vector<unsigned long> seen;
    for (std::string line; std::getline(maps, line);) {
        if (line.find("memfd:coll_hier") == std::string::npos) continue;
        unsigned long begin = 0, end = 0, inode = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %lu", &begin, &end, &inode) != 3)
            continue;
        if (std::find(seen.begin(), seen.end(), inode) != seen.end()) continue;
        seen.push_back(inode);
        bytes += end - begin;
    }
    return bytes;
}

}  // namespace bench
