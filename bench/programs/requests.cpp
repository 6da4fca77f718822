// SPDX-License-Identifier: BSD-3-Clause
// Times MPI_Allgather beside its nonblocking and its persistent form, and what of them a computation hides.
#include "bench/lib/machine/layout.hpp"
#include "bench/lib/memory/memory_gpu.hpp"
#include "bench/lib/output/csv.hpp"
#include "bench/lib/output/origin.hpp"
#include "bench/lib/program/agree.hpp"
#include "bench/lib/program/program.hpp"
#include "bench/lib/timing/iterations.hpp"
#include "bench/lib/timing/timing.hpp"
#include "test/mpi/lib/persistent.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr bench::Program self = bench::Program::requests;

enum Way { blocking, nonblocking, persistent, overlapped, ways };
constexpr const char* names[ways] = {"blocking", "nonblocking", "persistent", "overlapped"};

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::byte value(int rank, std::size_t i)
{
    return static_cast<std::byte>(index(rank) * 131 + i * 7 + (i >> 8) + 1);
}

// Keeps a core busy, without a call of MPI.
void compute(double seconds)
{
    const double end = MPI_Wtime() + seconds;
    while (MPI_Wtime() < end) {
    }
}

class Calls {
public:
    Calls(int rank, int ranks, const bench::Options& options, const bench::Memories& memories,
          std::size_t bytes)
        : rank_(rank), ranks_(ranks), bytes_(bytes), in_place_(options.in_place),
          send_(*memories.send, bytes), receive_(*memories.receive, bytes * index(ranks))
    {
        if (has_memory())
            hier_test::allgather_init(from(), static_cast<int>(bytes_), MPI_BYTE, receive_.data(),
                                      static_cast<int>(bytes_), MPI_BYTE, MPI_COMM_WORLD,
                                      &persistent_);
    }
    Calls(const Calls&) = delete;
    Calls& operator=(const Calls&) = delete;
    ~Calls()
    {
        if (persistent_ != MPI_REQUEST_NULL) MPI_Request_free(&persistent_);
    }
    [[nodiscard]] bool has_memory() const
    {
        return send_.data() != nullptr && receive_.data() != nullptr;
    }

    // `seconds`: of computation in Way::overlapped.
    void call(Way way, double seconds)
    {
        const int count = static_cast<int>(bytes_);
        MPI_Request request = MPI_REQUEST_NULL;
        switch (way) {
        case blocking:
            MPI_Allgather(from(), count, MPI_BYTE, receive_.data(), count, MPI_BYTE,
                          MPI_COMM_WORLD);
            return;
        case persistent:
            MPI_Start(&persistent_);
            MPI_Wait(&persistent_, MPI_STATUS_IGNORE);
            return;
        case nonblocking:
        case overlapped:
        case ways:
            break;
        }
        MPI_Iallgather(from(), count, MPI_BYTE, receive_.data(), count, MPI_BYTE, MPI_COMM_WORLD,
                       &request);
        if (way == overlapped) compute(seconds);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }

    // Calls once and checks every byte.
    [[nodiscard]] std::string check(Way way)
    {
        std::vector<std::byte> bytes(receive_.bytes());
        receive_.memory().write(receive_.data(), bytes.data(), bytes.size());
        for (std::size_t i = 0; i < bytes_; i++) bytes[i] = value(rank_, i);
        if (in_place_)
            receive_.memory().write(receive_.at(bytes_ * index(rank_)), bytes.data(), bytes_);
        else
            send_.memory().write(send_.data(), bytes.data(), bytes_);
        call(way, 0);
        receive_.memory().read(bytes.data(), receive_.data(), bytes.size());
        for (int r = 0; r < ranks_; r++)
            for (std::size_t i = 0; i < bytes_; i++)
                if (bytes[index(r) * bytes_ + i] != value(r, i))
                    return std::string(names[way]) + ": a wrong byte " + std::to_string(i) +
                           " of rank " + std::to_string(r) + " on rank " + std::to_string(rank_);
        return "";
    }

private:
    [[nodiscard]] const void* from() const { return in_place_ ? MPI_IN_PLACE : send_.data(); }

    int rank_, ranks_;
    std::size_t bytes_;
    bool in_place_;
    bench::Buffer send_, receive_;
    MPI_Request persistent_ = MPI_REQUEST_NULL;
};

double time_once(Calls& calls, Way way, double seconds)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    calls.call(way, seconds);
    return MPI_Wtime() - begin;
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
        std::printf("nodes %s, memory %s\n%12s %12s %12s %12s %10s\n", layout_.text().c_str(),
                    memory_text(options_).c_str(), "bytes/rank", "blocking us", "nonblock. us",
                    "persist. us", "hidden %");
        std::string header = bench::origin_columns;
        header.append(",memory,in_place,bytes_per_rank,iterations,blocking_us,nonblocking_us,"
                      "persistent_us,overlapped_us,compute_us,hidden_percent");
        return csv_.open(options_.csv, header);
    }
    [[nodiscard]] std::string add(std::size_t bytes, std::size_t iterations, const double* medians,
                                  double computed) const
    {
        const double hidden = std::clamp(
            100 * (1 - (medians[overlapped] - computed) / medians[nonblocking]), 0.0, 100.0);
        std::printf("%12zu %12.2f %12.2f %12.2f %10.1f\n", bytes, medians[blocking] * 1e6,
                    medians[nonblocking] * 1e6, medians[persistent] * 1e6, hidden);
        std::fflush(stdout);
        auto fields = bench::origin(options_, layout_);
        fields.push_back(memory_text(options_));
        fields.push_back(options_.in_place ? "1" : "0");
        fields.push_back(std::to_string(bytes));
        fields.push_back(std::to_string(iterations));
        for (int way = 0; way < ways; way++) fields.push_back(bench::fixed(medians[way] * 1e6, 2));
        fields.push_back(bench::fixed(computed * 1e6, 2));
        fields.push_back(bench::fixed(hidden, 1));
        return csv_.add(fields);
    }

private:
    const bench::Options& options_;
    const bench::Layout& layout_;
    bench::Csv csv_;
};

// Returns the exit status.
int measure(int rank, const bench::Options& options, const bench::Layout& layout,
            const bench::Memories& memories, std::size_t bytes, const Table& table)
{
    Calls calls(rank, layout.ranks(), options, memories, bytes);
    std::string failure =
        bench::agree_on_failure(MPI_COMM_WORLD, calls.has_memory() ? "" : "too little memory");
    if (!failure.empty()) return bench::complain(rank, self, bench::exit_usage, failure);
    for (int way = 0; way < ways; way++) {
        failure = bench::agree_on_failure(MPI_COMM_WORLD, calls.check(static_cast<Way>(way)));
        if (!failure.empty()) return bench::complain(rank, self, bench::exit_wrong, failure);
    }

    std::vector<double> times[ways];
    const auto time_ways = [&](long rounds, double computed, int first, int last) {
        for (std::vector<double>& of_way : times) of_way.clear();
        for (long i = 0; i < rounds; i++)
            for (int w = 0; w < last - first; w++) {
                // Each way comes first as often as the others.
                const auto way = static_cast<Way>(first + (w + i) % (last - first));
                times[way].push_back(time_once(calls, way, computed));
            }
    };
    const auto median = [&](Way way) {
        double found = bench::find_slowest(MPI_COMM_WORLD, times[way]).statistics.median;
        MPI_Bcast(&found, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        return found;
    };
    const long warmup = bench::warmup_iterations(options, bytes);
    time_ways(warmup + 1, 0, blocking, overlapped);
    const double elapsed = median(blocking) + median(nonblocking) * 3 + median(persistent);
    const long rounds = bench::timed_iterations(options, bytes, elapsed);

    double medians[ways];
    time_ways(rounds, 0, blocking, overlapped);
    for (const Way way : {blocking, nonblocking, persistent}) medians[way] = median(way);
    // The computation takes as long as the call alone, as in osu_iallgather.
    const double computed = medians[nonblocking];
    time_ways(rounds, computed, overlapped, ways);
    medians[overlapped] = median(overlapped);
    failure = bench::agree_on_failure(
        MPI_COMM_WORLD,
        rank == 0 ? table.add(bytes, times[overlapped].size(), medians, computed) : "");
    return failure.empty() ? 0 : bench::complain(rank, self, bench::exit_usage, failure);
}

int run(int rank, bench::Options& options)
{
    const bench::Layout layout = bench::find_layout(MPI_COMM_WORLD, options.ranks_per_node);
    std::string failure = bench::share_sizes(options, layout.ranks());
    if (failure.empty() && !hier_test::has_persistent)
        failure = "this Open MPI has no persistent collectives";
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
