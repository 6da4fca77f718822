// SPDX-License-Identifier: BSD-3-Clause
// The rate at which every GPU's copy engine pushes into the next GPU, all at once. No allgather by
// copy engines is faster.
#include "bench/lib/machine/environment.hpp"
#include "bench/lib/machine/layout.hpp"
#include "bench/lib/output/csv.hpp"
#include "bench/lib/program/agree.hpp"
#include "bench/lib/program/program.hpp"
#include "bench/lib/timing/timing.hpp"
#include "cuda.hpp"
#include "push.hpp"

#include <mpi.h>

#include <array>
#include <cstdio>

namespace {

constexpr bench::Program self = bench::Program::p2p;
constexpr long usual_copies = 20;
constexpr const char* csv_header = "date,host,kernel,commit,label,gpu_runtime,ranks,bytes,copies,"
                                   "slowest_bytes_per_second,mean_bytes_per_second";

struct Rate {
    double slowest;  // of the slowest rank in each iteration, the median; bytes per second
    double mean;     // over iterations and ranks
};

std::string report(const bench::Options& options, const std::string& gpu, int ranks, long copies,
                   Rate rate)
{
    std::printf("# %s, kernel %s, %s, commit %s\n", bench::host_name().c_str(),
                bench::kernel_release().c_str(), gpu.c_str(), bench::commit().c_str());
    std::printf("# %d GPUs, each pushes %zu bytes into the next one, %ld times\n", ranks,
                options.copy_bytes, copies);
    std::printf("p2p: %.1f GB/s by the slowest GPU, %.1f GB/s on average\n", rate.slowest / 1e9,
                rate.mean / 1e9);
    bench::Csv csv;
    std::string failure = csv.open(options.csv, csv_header);
    if (!failure.empty()) {
        return failure;
    }
    const std::array<std::string, 11> fields{
        bench::utc_now(),
        bench::host_name(),
        bench::kernel_release(),
        bench::commit(),
        options.label,
        gpu,
        std::to_string(ranks),
        std::to_string(options.copy_bytes),
        std::to_string(copies),
        bench::fixed(rate.slowest, 0),
        bench::fixed(rate.mean, 0),
    };
    return csv.add(fields);
}

std::string refuse(const bench::Layout& layout)
{
    if (layout.nodes() > 1) {
        return "the ranks are on several hosts; run it on one";
    }
    return layout.ranks() < 2 ? "a copy needs two ranks or more; start more" : "";
}

int run(int rank, bench::Options& options)
{
    const bench::Layout layout = bench::find_layout(MPI_COMM_WORLD, 0);
    if (const std::string reason = refuse(layout); !reason.empty()) {
        return bench::complain(rank, self, bench::exit_usage, reason);
    }
    const bench::CudaDevice device = bench::take_device(MPI_COMM_WORLD);
    if (!device.failure.empty()) {
        return bench::complain(rank, self, bench::exit_usage, device.failure);
    }
    bench::Push push(MPI_COMM_WORLD, options.copy_bytes);
    if (!push.failure().empty()) {
        return bench::complain(rank, self, bench::exit_usage, push.failure());
    }
    if (const std::string wrong = push.check(); !wrong.empty()) {
        return bench::complain(rank, self, bench::exit_wrong, wrong);
    }
    const long copies = options.iterations > 0 ? options.iterations : usual_copies;
    const bench::SlowestRank times = bench::find_slowest(MPI_COMM_WORLD, push.time(copies));
    const double bytes = static_cast<double>(options.copy_bytes);
    const Rate rate{bytes / times.statistics.median, bytes / times.mean_of_ranks};
    const std::string failure = bench::agree_on_failure(
        MPI_COMM_WORLD,
        rank == 0 ? report(options, device.name, layout.ranks(), copies, rate) : "");
    return failure.empty() ? 0 : bench::complain(rank, self, bench::exit_usage, failure);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, self, run); }
