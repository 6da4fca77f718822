// SPDX-License-Identifier: BSD-3-Clause
// Times MPI_Allgatherv with equal and with very different counts, beside MPI_Allgather.
#include "bench/lib/machine/layout.hpp"
#include "bench/lib/memory/memory_gpu.hpp"
#include "bench/lib/output/csv.hpp"
#include "bench/lib/output/origin.hpp"
#include "bench/lib/program/agree.hpp"
#include "bench/lib/program/program.hpp"
#include "bench/lib/timing/iterations.hpp"
#include "bench/lib/timing/timing.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

namespace {

constexpr bench::Program self = bench::Program::allgatherv;

// One way to call: MPI_Allgather, or MPI_Allgatherv with some counts.
struct Way {
    const char* name;
    bool is_v;
    std::vector<int> counts, displacements;  // bytes, by rank
    std::vector<double> times;               // of this rank
};

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// Growing blocks begin at multiples of a cache line or two, as arrays of numbers do. Copies to odd
// addresses would be slower than those of MPI_Allgather.
std::vector<int> counts_of(const std::string& name, int ranks, std::size_t total)
{
    constexpr std::size_t grain = 256;
    const std::size_t parts = index(ranks) * (index(ranks) + 1) / 2;
    const std::size_t part = total / parts < grain ? total / parts : total / parts / grain * grain;
    std::vector<int> counts(index(ranks));
    for (int r = 0; r < ranks; r++) {
        const std::size_t bytes = name == "growing" ? part * (index(r) + 1)
                                  : name == "one"   ? (r == ranks / 2 ? total : 0)
                                                    : total / index(ranks);
        counts[index(r)] = static_cast<int>(bytes);
    }
    return counts;
}

Way make_way(const char* name, bool is_v, int ranks, std::size_t total, std::size_t gap)
{
    Way way{name, is_v, counts_of(name, ranks, total), std::vector<int>(index(ranks)), {}};
    int end = 0;
    for (int r = 0; r < ranks; r++) {
        way.displacements[index(r)] = end;
        end += way.counts[index(r)] + (is_v ? static_cast<int>(gap) : 0);
    }
    return way;
}

// The bytes that the busiest node has to receive, or of a single node the busiest rank.
double bytes_in(const bench::Layout& layout, const std::vector<int>& counts)
{
    const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
    double least = all;
    for (const auto& ranks : layout.ranks_of) {
        double of_node = 0;
        for (const int rank : ranks) {
            of_node += counts[index(rank)];
            if (layout.nodes() == 1) least = std::min<double>(least, counts[index(rank)]);
        }
        if (layout.nodes() > 1) least = std::min(least, of_node);
    }
    return all - least;
}

std::byte value(int rank, std::size_t i)
{
    return static_cast<std::byte>(index(rank) * 131 + i * 7 + (i >> 8) + 1);
}

class Calls {
public:
    Calls(int rank, const bench::Options& options, const bench::Memories& memories,
          std::size_t bytes)
        : rank_(rank), in_place_(options.in_place), send_(*memories.send, bytes),
          receive_(*memories.receive, bytes)
    {
    }
    [[nodiscard]] bool has_memory() const
    {
        return send_.data() != nullptr && receive_.data() != nullptr;
    }

    void call(const Way& way) const
    {
        const void* const from = in_place_ ? MPI_IN_PLACE : send_.data();
        const int own = way.counts[index(rank_)];
        if (way.is_v) {
            MPI_Allgatherv(from, own, MPI_BYTE, receive_.data(), way.counts.data(),
                           way.displacements.data(), MPI_BYTE, MPI_COMM_WORLD);
        } else {
            MPI_Allgather(from, own, MPI_BYTE, receive_.data(), own, MPI_BYTE, MPI_COMM_WORLD);
        }
    }

    // Calls once and checks every byte.
    [[nodiscard]] std::string check(const Way& way) const
    {
        std::vector<std::byte> bytes(receive_.bytes());
        receive_.memory().write(receive_.data(), bytes.data(), bytes.size());
        for (std::size_t i = 0; i < index(way.counts[index(rank_)]); i++)
            bytes[i] = value(rank_, i);
        const auto own = index(way.counts[index(rank_)]);
        if (own > 0 && in_place_) {
            receive_.memory().write(receive_.at(index(way.displacements[index(rank_)])),
                                    bytes.data(), own);
        } else if (own > 0) {
            send_.memory().write(send_.data(), bytes.data(), own);
        }
        call(way);
        receive_.memory().read(bytes.data(), receive_.data(), bytes.size());
        for (std::size_t r = 0; r < way.counts.size(); r++)
            for (std::size_t i = 0; i < index(way.counts[r]); i++)
                if (bytes[index(way.displacements[r]) + i] != value(static_cast<int>(r), i))
                    return std::string(way.name) + ": a wrong byte " + std::to_string(i) +
                           " of rank " + std::to_string(r) + " on rank " + std::to_string(rank_);
        return "";
    }

private:
    int rank_;
    bool in_place_;
    bench::Buffer send_, receive_;
};

void time_once(const Calls& calls, Way& way)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    calls.call(way);
    way.times.push_back(MPI_Wtime() - begin);
}

class Table {
public:
    Table(const bench::Options& options, const bench::Layout& layout)
        : options_(options), layout_(layout)
    {
    }
    [[nodiscard]] std::string open()
    {
        bench::print_versions();
        std::printf("nodes %s, memory %s\n%12s  %-10s %12s %12s %12s\n", layout_.text().c_str(),
                    memory_text(options_).c_str(), "bytes in all", "counts", "median us", "p99 us",
                    "to allgather");
        std::string header = bench::origin_columns;
        header.append(",memory,in_place,gap,bytes,counts,iterations,median_us,p99_us,ratio");
        return csv_.open(options_.csv, header);
    }
    [[nodiscard]] std::string add(std::size_t total, const Way& way, const bench::Statistics& times,
                                  double ratio) const
    {
        const char* const name = way.is_v ? way.name : "allgather";
        std::printf("%12zu  %-10s %12.1f %12.1f %12.2f\n", total, name, times.median * 1e6,
                    times.p99 * 1e6, ratio);
        std::fflush(stdout);
        auto fields = bench::origin(options_, layout_);
        fields.push_back(memory_text(options_));
        fields.push_back(options_.in_place ? "1" : "0");
        fields.push_back(std::to_string(options_.gap));
        fields.push_back(std::to_string(total));
        fields.push_back(name);
        fields.push_back(std::to_string(way.times.size()));
        fields.push_back(bench::fixed(times.median * 1e6, 2));
        fields.push_back(bench::fixed(times.p99 * 1e6, 2));
        fields.push_back(bench::fixed(ratio, 3));
        return csv_.add(fields);
    }

private:
    const bench::Options& options_;
    const bench::Layout& layout_;
    bench::Csv csv_;
};

long iterations_of(const bench::Options& options, const Calls& calls, std::vector<Way>& ways,
                   std::size_t bytes)
{
    const long warmup = bench::warmup_iterations(options, bytes);
    double begin = 0;
    for (long i = 0; i <= warmup; i++) {
        if (i == warmup) begin = MPI_Wtime();
        for (Way& way : ways) time_once(calls, way);
    }
    double elapsed = MPI_Wtime() - begin;
    MPI_Allreduce(MPI_IN_PLACE, &elapsed, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (Way& way : ways) way.times.clear();
    return bench::timed_iterations(options, bytes, elapsed);
}

// Returns the exit status.
int measure(int rank, const bench::Options& options, const bench::Layout& layout,
            const bench::Memories& memories, std::size_t per_rank, const Table& table)
{
    const int ranks = layout.ranks();
    const std::size_t total = per_rank * index(ranks);
    const Calls calls(rank, options, memories, total + index(ranks) * options.gap);
    std::string failure =
        bench::agree_on_failure(MPI_COMM_WORLD, calls.has_memory() ? "" : "too little memory");
    if (!failure.empty()) return bench::complain(rank, self, bench::exit_usage, failure);

    std::vector<Way> ways;
    ways.push_back(make_way("equal", false, ranks, total, 0));
    for (const char* const name : {"equal", "growing", "one"})
        ways.push_back(make_way(name, true, ranks, total, options.gap));
    for (const Way& way : ways) {
        failure = bench::agree_on_failure(MPI_COMM_WORLD, calls.check(way));
        if (!failure.empty()) return bench::complain(rank, self, bench::exit_wrong, failure);
    }
    const long iterations = iterations_of(options, calls, ways, per_rank);
    // Each way comes first as often as the others.
    for (long i = 0; i < iterations; i++)
        for (std::size_t w = 0; w < ways.size(); w++)
            time_once(calls, ways[(w + index(static_cast<int>(i))) % ways.size()]);

    double of_equal = 0;  // seconds a byte
    for (const Way& way : ways) {
        const bench::Statistics times = bench::find_slowest(MPI_COMM_WORLD, way.times).statistics;
        const double of_byte = times.median / bytes_in(layout, way.counts);
        if (!way.is_v) of_equal = of_byte;
        failure = bench::agree_on_failure(
            MPI_COMM_WORLD, rank == 0 ? table.add(total, way, times, of_byte / of_equal) : "");
        if (!failure.empty()) return bench::complain(rank, self, bench::exit_usage, failure);
    }
    return 0;
}

int run(int rank, bench::Options& options)
{
    const bench::Layout layout = bench::find_layout(MPI_COMM_WORLD, options.ranks_per_node);
    std::string failure = layout.ranks() > 1 ? bench::share_sizes(options, layout.ranks())
                                             : "it needs two ranks or more; start more";
    if (!failure.empty()) return bench::complain(rank, self, bench::exit_usage, failure);
    const bench::Placement placement = bench::place_buffers(MPI_COMM_WORLD, options);
    if (!placement.failure.empty())
        return bench::complain(rank, self, bench::exit_usage, placement.failure);
    Table table(options, layout);
    failure = bench::agree_on_failure(MPI_COMM_WORLD, rank == 0 ? table.open() : "");
    if (!failure.empty()) return bench::complain(rank, self, bench::exit_usage, failure);
    for (const std::size_t size : options.sizes) {
        const int status = measure(rank, options, layout, placement.memories, size, table);
        if (status != 0) return status;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, self, run); }
