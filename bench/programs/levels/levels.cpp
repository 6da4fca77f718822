// SPDX-License-Identifier: BSD-3-Clause
// Does an allgather hide its faster level under the slower one? Times the network alone, the links
// alone, and both together.
#include "bench/lib/collective/counter.hpp"
#include "bench/lib/machine/layout.hpp"
#include "bench/lib/machine/link.hpp"
#include "bench/lib/memory/memory_gpu.hpp"
#include "bench/lib/program/agree.hpp"
#include "bench/lib/program/program.hpp"
#include "control.hpp"
#include "levels_bench.hpp"
#include "levels_report.hpp"

#include <mpi.h>

namespace {

constexpr bench::Program self = bench::Program::levels;
constexpr const char* cut_name = "coll_hier_ranks_per_node";

// The bench and hier must have the same nodes.
std::string cut_hosts(const bench::Control& cut, int ranks_per_node)
{
    const int now = cut.read().value_or(0);
    if (ranks_per_node == 0 && now != 0) {
        const std::string number = std::to_string(now);
        std::string is_cut = cut_name;
        is_cut.append(" is ").append(number).append(": say --ranks-per-node ").append(number);
        return is_cut.append(" instead");
    }
    if (ranks_per_node > 0 && !cut.write(ranks_per_node)) {
        std::string unknown = "--ranks-per-node: there is no ";
        return unknown.append(cut_name).append(" to set: give mpirun --mca coll hier");
    }
    return "";
}

std::string describe_fallback(const bench::LevelsMeasurement& m)
{
    const auto served = m.served();
    if (!served) {
        return "no counter says what hier serves: give mpirun --mca coll hier";
    }
    return "at " + std::to_string(m.bytes) + " bytes a rank hier served " +
           std::to_string(*served) + " of " + std::to_string(m.calls) +
           " calls of a part: give larger --sizes, or set coll_hier_min_bytes to 1";
}

int measure_sizes(int rank, const bench::Options& options, bench::LevelsBench& bench,
                  const bench::LevelsReport& report)
{
    std::string fallback;
    for (const std::size_t size : options.sizes) {
        const bench::LevelsMeasurement measurement = bench.measure(size);
        if (!measurement.failure.empty()) {
            return bench::complain(rank, self,
                                   measurement.usable ? bench::exit_wrong : bench::exit_usage,
                                   measurement.failure);
        }
        const std::string failure =
            bench::agree_on_failure(MPI_COMM_WORLD, rank == 0 ? report.add(measurement) : "");
        if (!failure.empty()) {
            return bench::complain(rank, self, bench::exit_usage, failure);
        }
        const auto calls = static_cast<std::uint64_t>(measurement.calls);
        if (fallback.empty() && measurement.served() != calls) {
            fallback = describe_fallback(measurement);
        }
    }
    return fallback.empty() ? 0 : bench::complain(rank, self, bench::exit_wrong, fallback);
}

int run(int rank, bench::Options& options)
{
    // This comes first. Making a communicator may call an allgather on this one, and hier reads the
    // variable at that call.
    const bench::Control cut(cut_name);
    std::string failure =
        bench::agree_on_failure(MPI_COMM_WORLD, cut_hosts(cut, options.ranks_per_node));
    if (!failure.empty()) {
        return bench::complain(rank, self, bench::exit_usage, failure);
    }
    const bench::Layout layout = bench::find_layout(MPI_COMM_WORLD, options.ranks_per_node);
    failure = layout.ranks() > 1 ? bench::share_sizes(options, layout.ranks())
                                 : "an allgather needs two ranks or more; start more";
    if (!failure.empty()) {
        return bench::complain(rank, self, bench::exit_usage, failure);
    }
    const bench::Placement placement = bench::place_buffers(MPI_COMM_WORLD, options);
    if (!placement.failure.empty()) {
        return bench::complain(rank, self, bench::exit_usage, placement.failure);
    }
    bench::Link link;
    bench::LevelsReport report(options, layout, link, placement.gpu_runtime);
    failure = bench::agree_on_failure(MPI_COMM_WORLD, rank == 0 ? report.open() : "");
    if (!failure.empty()) {
        return bench::complain(rank, self, bench::exit_usage, failure);
    }
    link = bench::find_link(MPI_COMM_WORLD, layout, options);
    if (rank == 0) {
        report.print_header();
    }
    const bench::Counter counter("coll_hier_allgather_calls");
    bench::LevelsBench bench(MPI_COMM_WORLD, layout, options, placement.memories, counter,
                             options.ranks_per_node > 0 ? &cut : nullptr);
    return measure_sizes(rank, options, bench, report);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, self, run); }
