// SPDX-License-Identifier: BSD-3-Clause
// One size: network alone, links alone and both together, in turn.
#pragma once

#include "bench/lib/collective/counter.hpp"
#include "bench/lib/collective/mpi_allgather.hpp"
#include "bench/lib/machine/layout.hpp"
#include "bench/lib/memory/buffers.hpp"
#include "bench/lib/memory/memory.hpp"
#include "bench/lib/options/options.hpp"
#include "bench/lib/timing/statistics.hpp"
#include "control.hpp"
#include "level.hpp"

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct PartFigures {
    bool exists = false;
    Statistics slowest_rank;              // seconds, over all ranks of the job
    std::optional<std::uint64_t> served;  // calls that hier served, on the rank with the fewest
};

struct LevelsMeasurement {
    std::size_t bytes = 0;  // a rank
    long iterations = 0;    // timed
    long calls = 0;         // of each part, with warm-up and validated ones
    long validated = 0;     // of each part
    PartFigures network;
    PartFigures links;
    PartFigures together;
    std::string failure;  // equal on all ranks; not empty: stop
    bool usable = true;   // false: `failure` means sizes or memory, not a wrong byte

    // Time of the slower level / time of both together; 0: not known.
    [[nodiscard]] double overlap() const;
    // The lowest figure of all parts and ranks; nothing if there is no counter.
    [[nodiscard]] std::optional<std::uint64_t> served() const;
};

class LevelsBench {
public:
    // Collective. `cut` is coll_hier_ranks_per_node; nullptr: nodes are hosts.
    LevelsBench(MPI_Comm comm, const Layout& layout, const Options& options,
                const Memories& memories, const Counter& counter, const Control* cut);

    // Collective. Stops at the first wrong byte.
    [[nodiscard]] LevelsMeasurement measure(std::size_t bytes);

private:
    // One part, and the figures of its calls of this size.
    struct Turn {
        Turn(MPI_Comm whole, const Layout& layout, Part part, int cut)
            : level(whole, layout, part), allgather(level.comm()), ranks_per_node(cut)
        {
        }
        Level level;
        MpiAllgather allgather;
        int ranks_per_node;  // of the virtual nodes into which hier cuts this communicator's hosts
        std::unique_ptr<Buffers> buffers;
        std::vector<double> times;
        bool is_counted = true;
        std::uint64_t missed = 0;  // calls that the counter did not see
    };

    [[nodiscard]] std::string make_buffers(std::size_t bytes);
    double call(Turn& turn);
    [[nodiscard]] std::string validated_call(Turn& turn);
    [[nodiscard]] std::string validated_round(LevelsMeasurement& result);
    [[nodiscard]] std::string timed_rounds(LevelsMeasurement& result);
    void round(bool forwards);
    [[nodiscard]] PartFigures figures(const Turn& turn, long calls);

    MPI_Comm comm_;
    const Options& options_;
    const Memories& memories_;
    const Counter& counter_;
    const Control* cut_;
    std::array<Turn, 3> turns_;
    std::uint64_t call_number_ = 0;  // the same on all ranks; never reused in a run
    long rounds_ = 0;                // of this size
};

}  // namespace bench
