// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <cerrno>
#include <cstring>
#include <memory>

#include "footprint.hpp"

namespace bench::simulator {
namespace {

constexpr double us = 1e6;
constexpr const char* csv_header =
    "layout,bytes_per_rank,memory,nics,nic_bytes_per_second,link_bytes_per_second,depth,streams,"
    "staged,algorithm,chunk,us,network_bound_us,links_bound_us,ratio,network_bytes_per_node,"
    "ops_per_rank,latency_bound_us,once_bound_us\n";

double ratio(double seconds, double bound) { return bound > 0 ? seconds / bound : 0; }

struct Close {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
};

}  // namespace

std::string text_of(const std::vector<int>& ranks_of)
{
    constexpr std::size_t listed = 16;
    if (is_even(ranks_of)) {
        return std::to_string(ranks_of.size()) + "x" + std::to_string(ranks_of[0]);
    }
    std::string text;
    for (std::size_t n = 0; n < ranks_of.size() && n < listed; n++) {
        text += (n > 0 ? "+" : "") + std::to_string(ranks_of[n]);
    }
    return text + (ranks_of.size() > listed ? "+..." : "");
}

void print_machine(const Options& options)
{
    const Machine& m = options.machine;
    const auto ranks_of = options.ranks_of();
    std::printf("# %s; NIC %.4g GB/s, %.3g us, %d on a node of %d\n", text_of(ranks_of).c_str(),
                m.nic_rate / 1e9, m.nic_latency * us, m.nics_of(ranks_of[0]), ranks_of[0]);
    if (m.is_host) {
        std::printf("# host memory: a core %.4g GB/s, a node %.4g GB/s, %.3g us a push\n",
                    m.core_rate / 1e9, m.memory_rate / 1e9, m.link_latency * us);
    } else {
        std::printf("# GPU ports %.4g GB/s; a copy %.3g us + bytes / rate, issued every %.3g us, "
                    "%d at a time; staged %s; by kernels up to %zu bytes; launch %.3g us\n",
                    m.link_rate / 1e9, m.link_latency * us, m.copy_issue * us, m.streams,
                    m.stage_rate > 0 ? "yes" : "no", m.fan_out, m.launch * us);
    }
}

void print_table(const Options& options, std::size_t bytes, const std::vector<Result>& results)
{
    const Bound bound = lower_bound(options.ranks_of(), bytes, options.machine);
    const Bound late = latency_bound(options.ranks_of(), bytes, options.machine);
    std::printf(
        "\n%zu bytes a rank; bound: network %.1f us, links %.1f us; with latencies %.1f us; "
        "each block over the network once %.1f us\n",
        bytes, bound.network * us, bound.links * us, late.seconds() * us, late.seconds_once() * us);
    std::printf("%-12s %9s %6s %13s %8s %8s %8s %15s %10s\n", "algorithm", "chunk", "depth", "us",
                "ratio", "latency", "once", "MB sent/node", "ops/rank");
    for (const Result& r : results) {
        const bool is_ours = r.choice.chunk > 0;
        const std::string chunk = is_ours ? std::to_string(r.choice.chunk) : "-";
        const std::string depth = !is_ours         ? "-"
                                  : r.choice.eager ? "eager"
                                                   : std::to_string(r.choice.depth);
        const double took = r.outcome.seconds;
        std::printf("%-12s %9s %6s %13.1f %8.3f %8.3f %8.3f %15.1f %10llu\n", r.algorithm.c_str(),
                    chunk.c_str(), depth.c_str(), took * us, ratio(took, bound.seconds()),
                    ratio(took, late.seconds()), ratio(took, late.seconds_once()),
                    r.outcome.network_bytes / 1e6,
                    static_cast<unsigned long long>(r.outcome.max_ops));
    }
}

void print_footprint(const Options& options, std::size_t bytes, const Result& result)
{
    const Footprint f = footprint_of(options, bytes, result.choice);
    std::printf("%s keeps on rank 0: %zu endpoints, board %zu bytes, segment %zu bytes a node, "
                "plan and run %zu bytes, topology %zu bytes; announces to %zu rail peers a call\n",
                result.algorithm.c_str(), f.endpoints, f.board, f.segment, f.program, f.topology,
                f.announcements);
}

std::string append_csv(const Options& options, std::size_t bytes,
                       const std::vector<Result>& results)
{
    const std::unique_ptr<std::FILE, Close> file(std::fopen(options.csv.c_str(), "a"));
    if (file == nullptr) {
        return "--csv " + options.csv + ": " + std::strerror(errno);
    }
    std::fseek(file.get(), 0, SEEK_END);
    if (std::ftell(file.get()) == 0) {
        std::fputs(csv_header, file.get());
    }
    const Machine& m = options.machine;
    const auto ranks_of = options.ranks_of();
    const Bound bound = lower_bound(ranks_of, bytes, m);
    const Bound late = latency_bound(ranks_of, bytes, m);
    for (const Result& r : results) {
        std::fprintf(
            file.get(),
            "%s,%zu,%s,%d,%.0f,%.0f,%d,%d,%s,%s,%zu,%.3f,%.3f,%.3f,%.4f,%.0f,%llu,%.3f,%.3f\n",
            text_of(ranks_of).c_str(), bytes, m.is_host ? "host" : "device", m.nics_of(ranks_of[0]),
            m.nic_rate, m.is_host ? m.core_rate : m.link_rate, r.choice.depth, m.streams,
            m.stage_rate > 0 ? "yes" : "no", r.algorithm.c_str(), r.choice.chunk,
            r.outcome.seconds * us, bound.network * us, bound.links * us,
            ratio(r.outcome.seconds, bound.seconds()), r.outcome.network_bytes,
            static_cast<unsigned long long>(r.outcome.max_ops), late.seconds() * us,
            late.seconds_once() * us);
    }
    const bool is_written = std::fflush(file.get()) == 0 && std::ferror(file.get()) == 0;
    return is_written ? "" : "--csv " + options.csv + ": " + std::strerror(errno);
}

void print_calibration(const std::vector<Measurement>& measurements)
{
    std::printf("%-10s %10s %-12s %12s %12s %8s  %s\n", "layout", "bytes/rank", "algorithm",
                "simulated us", "measured us", "error", "source");
    for (const Measurement& m : measurements) {
        const std::size_t bytes = m.options.sizes[0];
        const Result result = run_all(m.options, bytes)[0];
        const double simulated = result.outcome.seconds;
        std::printf("%-10s %10zu %-12s %12.1f %12.1f %+7.1f%%  %s\n",
                    text_of(m.options.ranks_of()).c_str(), bytes, result.algorithm.c_str(),
                    simulated * us, m.seconds * us, (simulated / m.seconds - 1) * 100,
                    m.source.c_str());
    }
}

}  // namespace bench::simulator
