// SPDX-License-Identifier: BSD-3-Clause
// Invented machines as short strings.
//
//   "3,1"        nodes of 3 and 1 ranks, numbered node by node
//   "0 1 0 2 1"  the node of each rank
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace hier::test {

inline std::vector<int> machine(const std::string& text)
{
    const bool by_size = text.find(' ') == std::string::npos;
    std::istringstream in(text);
    std::vector<int> node_of_rank;
    std::string word;
    for (int node = 0; std::getline(in, word, by_size ? ',' : ' '); node++) {
        const int number = std::stoi(word);
        if (by_size) {
            node_of_rank.insert(node_of_rank.end(), static_cast<std::size_t>(number), node);
        } else {
            node_of_rank.push_back(number);
        }
    }
    return node_of_rank;
}

// Every way to put `ranks` ranks on nodes: each rank joins a node that is there or opens the next
// one.
inline std::vector<std::vector<int>> every_machine(int ranks)
{
    std::vector<std::vector<int>> all = {{}};
    for (int r = 0; r < ranks; r++) {
        std::vector<std::vector<int>> longer;
        for (const auto& machine : all) {
            int nodes = 0;
            for (const int node : machine) nodes = node >= nodes ? node + 1 : nodes;
            for (int node = 0; node <= nodes; node++) {
                longer.push_back(machine);
                longer.back().push_back(node);
            }
        }
        all = std::move(longer);
    }
    return all;
}

inline std::string text_of(const std::vector<int>& machine)
{
    std::string out;
    for (const int node : machine) out += (out.empty() ? "" : " ") + std::to_string(node);
    return out;
}

}  // namespace hier::test
