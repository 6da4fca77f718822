// Times MPI_Allgather in the manner of osu_allgather, and against the network's own limit.
#include "agree.hpp"
#include "counter.hpp"
#include "layout.hpp"
#include "link.hpp"
#include "measure.hpp"
#include "memory.hpp"
#include "options.hpp"
#include "report.hpp"

#include <mpi.h>

#include <cstdio>

namespace {

constexpr int exit_wrong = 1;
constexpr int exit_usage = 2;

int complain(int rank, int status, const std::string& message)
{
    if (rank == 0) {
        std::fprintf(stderr, "allgather: %s\n", message.c_str());
    }
    return status;
}

int run(int rank, const bench::Options& options)
{
    const auto memory = bench::make_memory(options.memory);
    if (memory == nullptr) {
        return complain(rank, exit_usage, "this kind of memory is not built into this program");
    }
    const bench::Layout layout = bench::find_layout(MPI_COMM_WORLD, options.ranks_per_node);
    bench::Link link;
    bench::Report report(options, layout, link);
    std::string failure = bench::agree_on_failure(MPI_COMM_WORLD, rank == 0 ? report.open() : "");
    if (!failure.empty()) {
        return complain(rank, exit_usage, failure);
    }
    link = bench::find_link(MPI_COMM_WORLD, layout, options);
    if (rank == 0) {
        report.print_header();
    }
    const bench::Counter counter("coll_hier_allgather_calls");
    bench::Bench allgather(MPI_COMM_WORLD, options, *memory, counter);
    for (const std::size_t size : options.sizes) {
        const bench::Measurement measurement = allgather.measure(size);
        if (!measurement.failure.empty()) {
            return complain(rank, measurement.usable ? exit_wrong : exit_usage,
                            measurement.failure);
        }
        failure = bench::agree_on_failure(MPI_COMM_WORLD, rank == 0 ? report.add(measurement) : "");
        if (!failure.empty()) {
            return complain(rank, exit_usage, failure);
        }
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const bench::ParsedOptions parsed = bench::parse_options(argc, argv);
    int status = 0;
    if (!parsed.error.empty()) {
        status = complain(rank, exit_usage, parsed.error);
    } else if (parsed.options.help) {
        if (rank == 0) {
            std::fputs(bench::usage(), stdout);
        }
    } else {
        status = run(rank, parsed.options);
    }
    MPI_Finalize();
    return status;
}
