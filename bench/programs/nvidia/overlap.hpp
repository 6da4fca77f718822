// SPDX-License-Identifier: BSD-3-Clause
// How much of an allgather still shows if the GPU is busy with matrix products. The products are
// launched first. A nonblocking allgather ends after them, without calls of MPI in between.
#pragma once

#include "bench/lib/collective/collective.hpp"
#include "bench/lib/collective/counter.hpp"
#include "bench/lib/memory/buffers.hpp"
#include "bench/lib/memory/memory.hpp"
#include "bench/lib/options/options.hpp"
#include "gemm.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench {

// Times are in seconds: in each iteration the slowest rank counts, and the median of all iterations
// is taken.
struct Overlap {
    std::size_t bytes = 0;  // a rank
    long iterations = 0;
    long gemms = 0;          // of one iteration
    double allgather = 0.0;  // alone
    double gemm = 0.0;       // alone
    // GEMMs launched, then the allgather, then a wait for the GEMMs, then for the allgather.
    double both = 0.0;
    // These compare an iteration with the allgather and the one without it right before. The clock
    // of a GPU under load can change by a tenth between two distant iterations.
    double added = 0.0;     // both - GEMMs alone
    double slowdown = 0.0;  // GEMMs with the allgather / GEMMs alone - 1, by the device's clock
    // The mean of one allgather while GEMMs run before it, during it and after it. A median would hide that some calls
    // start at once and others wait for the end of a GEMM. 0: the GPU was idle meanwhile.
    double busy = 0.0;
    long calls = 0;
    std::optional<std::uint64_t> served;
    std::string failure;  // equal on all ranks; not empty: stop
    bool usable = true;   // false: `failure` means too little memory, not a wrong byte

    [[nodiscard]] double exposed() const { return added / allgather; }
};

class OverlapBench {
public:
    OverlapBench(MPI_Comm comm, const Options& options, const Memories& memories,
                 Allgather& allgather, const Counter* counter, Gemm& gemm);

    // Collective.
    [[nodiscard]] Overlap measure(std::size_t bytes);

private:
    struct Times {
        std::vector<double> host;
        std::vector<double> device;  // of the GEMMs
    };
    // One iteration. `buffers` is nullptr: without the allgather.
    void time(long gemms, const Buffers* buffers, Times& times);
    // The slowest rank's times, without the warm-up.
    [[nodiscard]] std::vector<double> slowest(const std::vector<double>& times) const;
    [[nodiscard]] long choose_gemms(double allgather);
    void measure(const Buffers& buffers, Overlap& result);
    [[nodiscard]] double under_gemms(const Buffers& buffers, const Overlap& result);
    [[nodiscard]] std::string validated_call(const Buffers& buffers, long gemms);

    MPI_Comm comm_;
    const Options& options_;
    const Memories& memories_;
    Allgather& allgather_;
    const Counter* counter_;
    Gemm& gemm_;
    std::uint64_t call_number_ = 0;
    long calls_ = 0;  // of this size
};

}  // namespace bench
