// SPDX-License-Identifier: BSD-3-Clause
// The messages of set-up for the ranks of one node of a large team. These ranks are threads of this
// process, and exchange real messages. What a rank of another node would send is computed: it is
// what a rank here sends, with another node's key.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "hier/hier.h"

namespace bench {

class ComputedWorld {
public:
    // Ranks 0 ... node_size-1 of the team are here. Nodes have consecutive ranks.
    ComputedWorld(int ranks, int node_size);
    ~ComputedWorld();
    ComputedWorld(const ComputedWorld&) = delete;
    ComputedWorld& operator=(const ComputedWorld&) = delete;

    hier_bootstrap bootstrap(int rank);
    // What a rank has sent so far.
    std::size_t messages(int rank) const;
    std::size_t bytes(int rank) const;

private:
    struct Inbox;
    struct Rank;

    static int exchange(void* context, const void* out, std::size_t out_bytes, int to, void* in,
                        std::size_t in_bytes, int from);
    void compute(Rank& self, const std::byte* out, std::size_t bytes, int from, std::byte* in);

    int ranks_, node_size_;
    std::vector<std::unique_ptr<Rank>> here_;
};

}  // namespace bench
