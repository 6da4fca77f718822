// SPDX-License-Identifier: BSD-3-Clause
// The copies that fill and empty device cells, started several at a time.
#pragma once

#include <vector>

#include "hier/gpu.hpp"
#include "node/node_path.hpp"

namespace hier {

class DeviceCellCopies {
public:
    explicit DeviceCellCopies(const NodeContext& context) : context_(context) {}

    void clear() { copies_.clear(); }
    // Joins a copy that goes on where the last one ends with the last one.
    void add(const gpu::Copy& copy);
    // Starts all that were added, on the queue of the call.
    Status start(std::uint64_t& ticket);
    Status reached(std::uint64_t ticket);
    // Has a copy exceeded its bound? It may go on for ever.
    bool has_hung() const { return has_hung_; }

private:
    const NodeContext& context_;
    std::vector<gpu::Copy> copies_;  // about to be started
    bool has_hung_ = false;
};

}  // namespace hier
