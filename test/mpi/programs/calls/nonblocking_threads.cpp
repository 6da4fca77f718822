// SPDX-License-Identifier: BSD-3-Clause
#include "nonblocking.hpp"

#include <thread>

namespace hier_test {

namespace {

// Several requests at a time on a communicator of the thread. Returns the first failure, or "". It
// runs beside other threads, so it does not use the session.
std::string work(MPI_Comm comm, std::uint64_t seed, int thread)
{
    constexpr int rounds = 25;
    constexpr int at_once = 4;
    fuzz::choose_device(rank_of(MPI_COMM_WORLD));
    OperationMaker maker(mix(seed, static_cast<std::uint64_t>(thread)), rank_of(comm));
    for (int round = 0; round < rounds; ++round) {
        Flights flights(at_once);
        MPI_Request requests[at_once];
        for (int i = 0; i < at_once; ++i) {
            const int call = round * at_once + i;
            const auto number = static_cast<std::uint64_t>(call);
            const unsigned bytes = 1 + pick(seed, number, 20000);
            Flight& flight = flights[static_cast<std::size_t>(i)];
            flight.operation =
                maker.plain(both_collectives[pick(seed + 1, number, 2)], comm, bytes);
            flight->fill(thread * 10000 + call);
            if (flight->start(&requests[i]) != MPI_SUCCESS) return "an error at a start";
        }
        if (MPI_Waitall(at_once, requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS) {
            return "an error of MPI_Waitall";
        }
        for (Flight& flight : flights) {
            const std::string wrong = flight->difference();
            if (!wrong.empty()) return flight->text() + ": " + wrong;
        }
    }
    return {};
}

}  // namespace

void run_threads(Session& session, int threads)
{
    session.phase("%d threads", threads);
    std::vector<MPI_Comm> comms(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 == 0 ? session.rank() : -session.rank(),
                       &comms[static_cast<std::size_t>(i)]);
    }
    const auto seed = static_cast<std::uint64_t>(session.number("seed", 1));
    std::vector<std::string> wrong(comms.size());
    {
        std::vector<std::jthread> running;
        for (std::size_t i = 0; i < comms.size(); ++i) {
            running.emplace_back([&wrong, &comms, seed, i] {
                wrong[i] = work(comms[i], seed, static_cast<int>(i));
            });
        }
    }
    for (std::size_t i = 0; i < comms.size(); ++i) {
        session.check(wrong[i].empty(), "thread %zu: %s", i, wrong[i].c_str());
        MPI_Comm_free(&comms[i]);
    }
}

}  // namespace hier_test
