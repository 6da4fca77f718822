// SPDX-License-Identifier: BSD-3-Clause
// How far the run of one program has come. The executor moves the run on. Watchdog and Failure read
// it.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "exec/program.hpp"
#include "hier/transport.hpp"

namespace hier {

struct Run {
    using Clock = std::chrono::steady_clock;
    // The next entry of each list of a Program::Pair.
    struct Cursor {
        std::size_t put = 0, await = 0, ready = 0;
    };

    Run(Transport* node, Transport* rail) : transports{node, rail} {}
    Run(const Run&) = delete;  // Watchdog and Failure refer to it
    Run& operator=(const Run&) = delete;
    ~Run() = default;

    void begin(const Program& next)
    {
        program = &next;
        remaining = next.size();
        is_done.assign(next.size(), false);
        not_ready = 0;
        in_flight = 0;
        began = Clock::now();
        for (const Level level : {Level::node, Level::rail}) {
            cursors_of(level).assign(next.pairs(level).size(), Cursor{});
            for (const auto& pair : next.pairs(level))
                not_ready += static_cast<std::uint32_t>(pair.readies.size());
        }
    }

    Transport* transport(Level level) const { return transports[static_cast<std::size_t>(level)]; }
    std::vector<Cursor>& cursors_of(Level level)
    {
        return cursors[static_cast<std::size_t>(level)];
    }
    const std::vector<Cursor>& cursors_of(Level level) const
    {
        return cursors[static_cast<std::size_t>(level)];
    }

    Transport* const transports[2];  // by level; null: the team does not have this level
    const Program* program = nullptr;
    std::vector<Cursor> cursors[2];  // by level, then in the order of Program::pairs
    std::uint32_t remaining = 0;     // operations
    std::vector<bool> is_done;       // by operation
    std::uint32_t not_ready = 0;     // peers that are not yet in the call
    int in_flight = 0;               // puts on the rail
    bool moved = false;              // have operations ended in the last pass, or bytes moved?
    Clock::time_point began;
};

}  // namespace hier
