// SPDX-License-Identifier: BSD-3-Clause
// Times an allgather in GPU memory under matrix products, by MPI_Allgather, MPI_Iallgather and NCCL's
// modes.
#include "bench/lib/collective/counter.hpp"
#include "bench/lib/collective/mpi_allgather.hpp"
#include "bench/lib/collective/mpi_iallgather.hpp"
#include "bench/lib/machine/layout.hpp"
#include "bench/lib/program/agree.hpp"
#include "bench/lib/program/program.hpp"
#include "cuda.hpp"
#include "gemm.hpp"
#include "overlap.hpp"
#include "overlap_report.hpp"

#include <mpi.h>

#include <memory>
#include <string>
#include <string_view>

#ifdef HIER_BENCH_NCCL
#include "nccl.hpp"
#endif

namespace {

constexpr bench::Program self = bench::Program::gpu_overlap;
constexpr std::string_view nccl_prefix = "nccl-";
constexpr std::string_view blocking = "mpi";
constexpr std::string_view nonblocking = "mpi-nonblocking";

// One name of --by.
struct Server {
    bench::Memories memories;
    std::unique_ptr<bench::Allgather> allgather;
};

std::string not_known(const std::string& name)
{
    if (name == blocking || name == nonblocking) {
        return "";
    }
#ifdef HIER_BENCH_NCCL
    if (name.starts_with(nccl_prefix)) {
        if (const auto mode = bench::parse_nccl_mode(name.substr(nccl_prefix.size()))) {
            return bench::missing(*mode);
        }
    }
    return "--by: '" + name +
           "' is not known; there are mpi, mpi-nonblocking, nccl-plain, nccl-symmetric and "
           "nccl-zero-cta";
#else
    return "--by: '" + name + "' is not known; there are mpi and mpi-nonblocking" +
           (name.starts_with(nccl_prefix) ? " (this program was built without NCCL)" : "");
#endif
}

Server make_server(const std::string& name)
{
#ifdef HIER_BENCH_NCCL
    if (name.starts_with(nccl_prefix)) {
        const auto mode = bench::parse_nccl_mode(name.substr(nccl_prefix.size()));
        return {bench::nccl_memories(*mode),
                std::make_unique<bench::NcclAllgather>(MPI_COMM_WORLD, *mode)};
    }
#endif
    Server server{{std::make_unique<bench::CudaMemory>(), std::make_unique<bench::CudaMemory>()},
                  nullptr};
    if (name == nonblocking) {
        server.allgather = std::make_unique<bench::MpiIallgather>(MPI_COMM_WORLD);
    } else {
        server.allgather = std::make_unique<bench::MpiAllgather>(MPI_COMM_WORLD);
    }
    return server;
}

std::string runtime_text(const bench::CudaDevice& device)
{
#ifdef HIER_BENCH_NCCL
    return device.name + ", " + bench::nccl_text();
#else
    return device.name;
#endif
}

int measure(int rank, const bench::Options& options, const std::string& name, bench::Gemm& gemm,
            const bench::OverlapReport& report)
{
    const Server server = make_server(name);
    const bench::Counter counter(name == nonblocking ? "coll_hier_iallgather_calls"
                                                     : "coll_hier_allgather_calls");
    const bool is_mpi = !name.starts_with(nccl_prefix);
    bench::OverlapBench bench(MPI_COMM_WORLD, options, server.memories, *server.allgather,
                              is_mpi ? &counter : nullptr, gemm);
    for (const std::size_t size : options.sizes) {
        const bench::Overlap overlap = bench.measure(size);
        if (!overlap.failure.empty()) {
            return bench::complain(rank, self,
                                   overlap.usable ? bench::exit_wrong : bench::exit_usage,
                                   name + ": " + overlap.failure);
        }
        const std::string failure =
            bench::agree_on_failure(MPI_COMM_WORLD, rank == 0 ? report.add(name, overlap) : "");
        if (!failure.empty()) {
            return bench::complain(rank, self, bench::exit_usage, failure);
        }
    }
    return 0;
}

// The checks that need no memory.
std::string refuse(bench::Options& options, int ranks)
{
    for (const std::string& name : options.by) {
        if (const std::string reason = not_known(name); !reason.empty()) {
            return reason;
        }
    }
    return bench::share_sizes(options, ranks);
}

int run(int rank, bench::Options& options)
{
    const bench::Layout layout = bench::find_layout(MPI_COMM_WORLD, 0);
    if (const std::string reason = refuse(options, layout.ranks()); !reason.empty()) {
        return bench::complain(rank, self, bench::exit_usage, reason);
    }
    const bench::CudaDevice device = bench::take_device(MPI_COMM_WORLD);
    if (!device.failure.empty()) {
        return bench::complain(rank, self, bench::exit_usage, device.failure);
    }
    bench::OverlapReport report(options, layout, runtime_text(device));
    const std::string failure =
        bench::agree_on_failure(MPI_COMM_WORLD, rank == 0 ? report.open() : "");
    if (!failure.empty()) {
        return bench::complain(rank, self, bench::exit_usage, failure);
    }
    if (rank == 0) {
        report.print_header();
    }
    bench::Gemm gemm(options.gemm_size);
    int status = 0;
    for (std::size_t i = 0; i < options.by.size() && status == 0; ++i) {
        status = measure(rank, options, options.by[i], gemm, report);
    }
    return status;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, self, run); }
