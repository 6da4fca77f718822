// SPDX-License-Identifier: BSD-3-Clause
// Times MPI_Allgather as osu_allgather does, and compares with the network's bound.
#include "bench/lib/collective/counter.hpp"
#include "bench/lib/collective/mpi_allgather.hpp"
#include "bench/lib/machine/layout.hpp"
#include "bench/lib/machine/link.hpp"
#include "bench/lib/memory/memory_gpu.hpp"
#include "bench/lib/output/report.hpp"
#include "bench/lib/program/agree.hpp"
#include "bench/lib/program/program.hpp"
#include "bench/lib/program/run.hpp"
#include "bench/lib/timing/measure.hpp"

#include <mpi.h>

#include <string>

namespace {

constexpr bench::Program self = bench::Program::allgather;

std::string call_text(const bench::Options& options)
{
    return "MPI_Allgather" +
           (options.blocks.is_whole() ? "" : " of blocks " + blocks_text(options.blocks));
}

int run(int rank, bench::Options& options)
{
    const bench::Layout layout = bench::find_layout(MPI_COMM_WORLD, options.ranks_per_node);
    std::string failure = bench::share_sizes(options, layout.ranks());
    if (!failure.empty()) {
        return bench::complain(rank, self, bench::exit_usage, failure);
    }
    const bench::Placement placement = bench::place_buffers(MPI_COMM_WORLD, options);
    if (!placement.failure.empty()) {
        return bench::complain(rank, self, bench::exit_usage, placement.failure);
    }
    bench::Link link;
    bench::Report report(options, layout, link, {call_text(options), placement.gpu_runtime});
    failure = bench::agree_on_failure(MPI_COMM_WORLD, rank == 0 ? report.open() : "");
    if (!failure.empty()) {
        return bench::complain(rank, self, bench::exit_usage, failure);
    }
    link = bench::find_link(MPI_COMM_WORLD, layout, options);
    if (rank == 0) {
        report.print_header();
    }
    const bench::Counter counter("coll_hier_allgather_calls");
    bench::MpiAllgather allgather(MPI_COMM_WORLD, options.blocks);
    bench::Bench bench(MPI_COMM_WORLD, options, placement.memories, allgather, &counter);
    return bench::measure_sizes(MPI_COMM_WORLD, self, options, bench, report);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, self, run); }
