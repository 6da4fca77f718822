// SPDX-License-Identifier: BSD-3-Clause
// One size: warm-up, validated calls, the timed loop.
#pragma once

#include "barrier.hpp"
#include "bench/lib/collective/collective.hpp"
#include "bench/lib/collective/counter.hpp"
#include "bench/lib/memory/buffers.hpp"
#include "bench/lib/memory/memory.hpp"
#include "bench/lib/options/options.hpp"
#include "statistics.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct Measurement {
    std::size_t bytes = 0;                // a rank
    long iterations = 0;                  // timed
    long calls = 0;                       // all, with warm-up and validated ones
    long validated = 0;                   // calls of which every byte was checked
    std::optional<std::uint64_t> served;  // calls that the counter saw, on the rank with the fewest
    Statistics slowest_rank;              // seconds
    double mean_of_ranks = 0.0;           // seconds; the figure that osu_allgather prints
    double loop = 0.0;    // seconds a call, back to back, of the slowest rank; 0: not measured
    std::string failure;  // equal on all ranks; not empty: stop
    bool usable = true;   // false: `failure` means too little memory, not a wrong byte
};

class Bench {
public:
    // `counter` may be nullptr; then `served` stays unknown.
    Bench(MPI_Comm comm, const Options& options, const Memories& memories, Allgather& allgather,
          const Counter* counter);

    // Collective. Stops at the first wrong byte.
    [[nodiscard]] Measurement measure(std::size_t bytes);

private:
    // Pairs of buffers that take turns.
    using Turns = std::vector<Buffers>;

    [[nodiscard]] const Buffers& next(const Turns& turns) const
    {
        return turns[static_cast<std::size_t>(calls_) % turns.size()];
    }
    void call(const Buffers& buffers);
    void settle(const Buffers& buffers);
    void prepare(const Buffers& buffers);
    [[nodiscard]] std::string check(const Buffers& buffers);
    [[nodiscard]] std::string validated_calls(const Turns& turns, long count);
    [[nodiscard]] long choose_iterations(const Turns& turns);
    void timed_loop(const Turns& turns, Measurement& result);
    void back_to_back(const Turns& turns, Measurement& result);

    MPI_Comm comm_;
    Barrier barrier_;
    const Options& options_;
    const Memories& memories_;
    Allgather& allgather_;
    const Counter* counter_;
    bool is_settled_ = false;
    std::uint64_t call_number_ = 0;  // the same on all ranks; never reused in a run
    long calls_ = 0;                 // of this size
    long validated_ = 0;             // of this size
};

}  // namespace bench
