// SPDX-License-Identifier: BSD-3-Clause
#include "overlap_report.hpp"

#include "bench/lib/machine/environment.hpp"

#include <array>
#include <cstdio>
#include <utility>

namespace bench {
namespace {

constexpr double us = 1e6;
constexpr const char* csv_header =
    "date,host,kernel,mpi,commit,label,coll,gpu_runtime,by,nodes,ranks,layout,total_bytes,"
    "bytes_per_rank,in_place,iterations,gemm_size,gemms,allgather_us,gemm_us,both_us,"
    "exposed_percent,gemm_slowdown_percent,busy_us,calls,served_by_hier";

}  // namespace

OverlapReport::OverlapReport(const Options& options, const Layout& layout, std::string gpu_runtime)
    : options_(options), layout_(layout), gpu_runtime_(std::move(gpu_runtime))
{
}

std::string OverlapReport::open() { return csv_.open(options_.csv, csv_header); }

void OverlapReport::print_header() const
{
    std::printf("# %s, kernel %s, %s, commit %s\n", host_name().c_str(), kernel_release().c_str(),
                mpi_version().c_str(), commit().c_str());
    std::printf("# %d ranks on %d node(s) (%s), %s%s, bf16 GEMMs of %ld x %ld launched first\n",
                layout_.ranks(), layout_.nodes(), layout_.text().c_str(), gpu_runtime_.c_str(),
                options_.in_place ? ", in place" : "", options_.gemm_size, options_.gemm_size);
    std::printf("%-14s %11s %12s %6s %11s %11s %9s %9s %9s %7s\n", "by", "total bytes",
                "allgather us", "GEMMs", "GEMMs us", "both us", "exposed", "slow-down", "busy us",
                "hier");
    std::fflush(stdout);
}

std::string OverlapReport::add(const std::string& by, const Overlap& o) const
{
    const std::size_t total = o.bytes * static_cast<std::size_t>(layout_.ranks());
    std::printf("%-14s %11zu %12.1f %6ld %11.1f %11.1f %8.1f%% %8.1f%% %9.1f %7s\n", by.c_str(),
                total, o.allgather * us, o.gemms, o.gemm * us, o.both * us, o.exposed() * 100.0,
                o.slowdown * 100.0, o.busy * us,
                o.served ? std::to_string(*o.served).c_str() : "-");
    std::fflush(stdout);
    const std::array<std::string, 26> fields{
        utc_now(),
        host_name(),
        kernel_release(),
        mpi_version(),
        commit(),
        options_.label,
        coll_selection(),
        gpu_runtime_,
        by,
        std::to_string(layout_.nodes()),
        std::to_string(layout_.ranks()),
        layout_.text(),
        std::to_string(total),
        std::to_string(o.bytes),
        options_.in_place ? "yes" : "no",
        std::to_string(o.iterations),
        std::to_string(options_.gemm_size),
        std::to_string(o.gemms),
        fixed(o.allgather * us, 3),
        fixed(o.gemm * us, 3),
        fixed(o.both * us, 3),
        fixed(o.exposed() * 100.0, 2),
        fixed(o.slowdown * 100.0, 2),
        fixed(o.busy * us, 3),
        std::to_string(o.calls),
        o.served ? std::to_string(*o.served) : "",
    };
    return csv_.add(fields);
}

}  // namespace bench
