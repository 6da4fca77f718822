// SPDX-License-Identifier: BSD-3-Clause
// How many calls of MPI_Allgather do threads complete, each on a communicator of its own?
#include "bench/lib/machine/layout.hpp"
#include "bench/lib/output/csv.hpp"
#include "bench/lib/output/origin.hpp"
#include "bench/lib/program/agree.hpp"
#include "bench/lib/program/program.hpp"

#include <mpi.h>

#include <cstdio>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr bench::Program self = bench::Program::threads;
constexpr int most_threads = 4;

// The calls of one thread. All ranks make as many: rank 0 says when it is time to end.
long calls_of(MPI_Comm comm, std::size_t bytes, double seconds)
{
    constexpr int together = 20;
    int rank = 0, ranks = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const auto all = static_cast<std::size_t>(ranks);
    const std::vector<char> send(bytes, static_cast<char>(rank));
    std::vector<char> receive(bytes * all), said(all);
    const int count = static_cast<int>(bytes);
    const double end = MPI_Wtime() + seconds;
    for (long calls = 0;; calls += together) {
        const char is_over = MPI_Wtime() < end ? 0 : 1;
        MPI_Allgather(&is_over, 1, MPI_CHAR, said.data(), 1, MPI_CHAR, comm);
        if (said[0] != 0) return calls;
        for (int i = 0; i < together; i++)
            MPI_Allgather(send.data(), count, MPI_CHAR, receive.data(), count, MPI_CHAR, comm);
        for (int r = 0; r < ranks && bytes > 0; r++)
            if (receive[static_cast<std::size_t>(r) * bytes] != static_cast<char>(r))
                bench::give_up("a wrong byte of rank " + std::to_string(r));
    }
}

double calls_a_second(const std::vector<MPI_Comm>& comms, int threads, std::size_t bytes,
                      double seconds)
{
    std::vector<long> calls(static_cast<std::size_t>(threads));
    std::vector<std::thread> running;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int t = 0; t < threads; t++)
        running.emplace_back([&, i = static_cast<std::size_t>(t)] {
            calls[i] = calls_of(comms[i], bytes, seconds);
        });
    for (std::thread& thread : running) thread.join();
    const double elapsed = MPI_Wtime() - begin;
    return static_cast<double>(std::accumulate(calls.begin(), calls.end(), 0L)) / elapsed;
}

int run(int rank, bench::Options& options)
{
    const bench::Layout layout = bench::find_layout(MPI_COMM_WORLD, options.ranks_per_node);
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    std::string failure = bench::share_sizes(options, layout.ranks());
    if (failure.empty() && level < MPI_THREAD_MULTIPLE)
        failure = "this Open MPI has no MPI_THREAD_MULTIPLE";
    if (!failure.empty()) return bench::complain(rank, self, bench::exit_usage, failure);
    bench::Csv csv;
    std::string header = bench::origin_columns;
    header.append(",bytes_per_rank,threads,calls_per_second,ratio");
    failure =
        bench::agree_on_failure(MPI_COMM_WORLD, rank == 0 ? csv.open(options.csv, header) : "");
    if (!failure.empty()) return bench::complain(rank, self, bench::exit_usage, failure);
    if (rank == 0) {
        bench::print_versions();
        std::printf("nodes %s\n%12s %8s %12s %10s\n", layout.text().c_str(), "bytes/rank",
                    "threads", "calls/s", "to one");
    }
    std::vector<MPI_Comm> comms(most_threads);
    for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (const std::size_t bytes : options.sizes) {
        (void)calls_a_second(comms, most_threads, bytes, options.seconds / 4);  // sets all up
        double of_one = 0;
        for (int threads = 1; threads <= most_threads; threads *= 2) {
            const double rate = calls_a_second(comms, threads, bytes, options.seconds);
            if (threads == 1) of_one = rate;
            if (rank == 0) {
                std::printf("%12zu %8d %12.0f %10.2f\n", bytes, threads, rate, rate / of_one);
                auto fields = bench::origin(options, layout);
                for (const std::string& field :
                     {std::to_string(bytes), std::to_string(threads), bench::fixed(rate, 0),
                      bench::fixed(rate / of_one, 2)})
                    fields.push_back(field);
                failure = csv.add(fields);
            }
            failure = bench::agree_on_failure(MPI_COMM_WORLD, failure);
            if (!failure.empty()) return bench::complain(rank, self, bench::exit_usage, failure);
        }
    }
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
    return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run_program(argc, argv, self, run); }
