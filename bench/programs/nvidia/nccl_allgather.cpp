// SPDX-License-Identifier: BSD-3-Clause
// Times ncclAllGather in three modes, as bench/allgather times MPI_Allgather.
#include "bench/lib/machine/layout.hpp"
#include "bench/lib/machine/link.hpp"
#include "bench/lib/output/report.hpp"
#include "bench/lib/program/agree.hpp"
#include "bench/lib/program/program.hpp"
#include "bench/lib/program/run.hpp"
#include "bench/lib/timing/measure.hpp"
#include "nccl.hpp"

#include <mpi.h>

#include <vector>

namespace {

constexpr bench::Program self = bench::Program::nccl_allgather;

int measure(int rank, const bench::Options& options, const bench::Layout& layout,
            bench::NcclMode mode, const std::string& device)
{
    const bench::Link no_link;
    const std::string call = std::string("ncclAllGather ") + name_of(mode);
    bench::Report report(options, layout, no_link, {call, device + ", " + bench::nccl_text()});
    const std::string failure =
        bench::agree_on_failure(MPI_COMM_WORLD, rank == 0 ? report.open() : "");
    if (!failure.empty()) {
        return bench::complain(rank, self, bench::exit_usage, failure);
    }
    if (rank == 0) {
        report.print_header();
    }
    const bench::Memories memories = bench::nccl_memories(mode);
    bench::NcclAllgather allgather(MPI_COMM_WORLD, mode);
    bench::Bench bench(MPI_COMM_WORLD, options, memories, allgather, nullptr);
    return bench::measure_sizes(MPI_COMM_WORLD, self, options, bench, report);
}

std::string parse_modes(const bench::Options& options, std::vector<bench::NcclMode>& modes)
{
    for (const std::string& name : options.by) {
        const auto mode = bench::parse_nccl_mode(name);
        if (!mode) {
            return "--by: '" + name + "' is not known; there are plain, symmetric and zero-cta";
        }
        if (const std::string reason = bench::missing(*mode); !reason.empty()) {
            return reason;
        }
        modes.push_back(*mode);
    }
    return "";
}

int run(int rank, bench::Options& options)
{
    const bench::Layout layout = bench::find_layout(MPI_COMM_WORLD, 0);
    std::vector<bench::NcclMode> modes;
    std::string failure = parse_modes(options, modes);
    if (failure.empty()) {
        failure = bench::share_sizes(options, layout.ranks());
    }
    if (!failure.empty()) {
        return bench::complain(rank, self, bench::exit_usage, failure);
    }
    const bench::CudaDevice device = bench::take_device(MPI_COMM_WORLD);
    if (!device.failure.empty()) {
        return bench::complain(rank, self, bench::exit_usage, device.failure);
    }
    int status = 0;
    for (std::size_t i = 0; i < modes.size() && status == 0; ++i) {
        status = measure(rank, options, layout, modes[i], device.name);
    }
    return status;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, self, run); }
