// SPDX-License-Identifier: BSD-3-Clause
// What a program may do while requests are active.
#include "nonblocking.hpp"

#include <algorithm>

namespace hier_test {

namespace {

void test_in_vain(Tester& tester, Flights& flights, int tests)
{
    MPI_Request requests[] = {flights[0].request, flights[1].request};
    for (int i = 0; i < tests; ++i) {
        int flags[4] = {};
        int index = 0, count = 0, indices[2] = {};
        MPI_Test(&requests[i % 2], &flags[0], MPI_STATUS_IGNORE);
        MPI_Testall(2, requests, &flags[1], MPI_STATUSES_IGNORE);
        MPI_Testany(2, requests, &index, &flags[2], MPI_STATUS_IGNORE);
        MPI_Request_get_status(requests[i % 2], &flags[3], MPI_STATUS_IGNORE);
        MPI_Testsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
        const bool is_over = std::any_of(flags, flags + 4, [](int flag) { return flag != 0; });
        if (!tester.session.check(!is_over && count == 0, "over before the others have called")) {
            break;
        }
    }
    for (std::size_t i = 0; i < flights.size(); ++i) {
        flights[i].request = requests[i];
    }
}

Flights start_with_empty_ranks(Tester& tester, MPI_Comm comm)
{
    Flights flights;
    for (const std::size_t bytes : {100UL, 50000UL}) {
        for (std::size_t empty = 0; empty < 2; ++empty) {
            Sizes sizes(static_cast<std::size_t>(size_of(comm)), bytes);
            for (std::size_t rank = empty; rank < sizes.size(); rank += 2) {
                sizes[rank] = 0;
            }
            flights.push_back(tester.checker.start(
                tester.maker.make(tester.collective, comm, sizes, {}), "some ranks without bytes"));
        }
    }
    return flights;
}

}  // namespace

// The first call on a communicator does not wait for the others. One rank calls, and the others call
// when they have heard of it: from this rank, or each from the rank before it.
void run_first_call(Tester& tester, std::size_t bytes)
{
    tester.session.phase("first calls, %zu bytes a rank", bytes);
    for (const int early : {0, tester.ranks - 1}) {
        for (const bool is_chain : {false, true}) {
            MPI_Comm comm = duplicate();
            if (!is_chain && tester.rank != early) hear(early);
            if (is_chain && tester.rank > 0) hear(tester.rank - 1);
            Flight flight = tester.start_plain(comm, bytes, "a first call");
            if (is_chain && tester.rank + 1 < tester.ranks) tell(tester.rank + 1);
            for (int other = 0; other < tester.ranks && !is_chain && tester.rank == early;
                 ++other) {
                if (other != early) tell(other);
            }
            tester.checker.wait(flight, "a first call");
            MPI_Comm_free(&comm);
        }
    }
}

// A rank tests its request while the others have not called.
void run_early_tests(Tester& tester)
{
    constexpr int tests = 300;
    for (int early = 0; early < tester.ranks; ++early) {
        tester.session.phase("early tests of rank %d", early);
        MPI_Comm comm = early % 2 == 0 ? duplicate() : MPI_COMM_WORLD;
        MPI_Barrier(MPI_COMM_WORLD);
        if (tester.rank != early) hear(early);
        Flights flights;
        for (const std::size_t bytes : {32UL, 100000UL}) {
            flights.push_back(tester.start_plain(comm, bytes, "an early call"));
        }
        if (tester.rank == early && tester.ranks > 1) {
            test_in_vain(tester, flights, tests);
            for (int other = 0; other < tester.ranks; ++other) {
                if (other != early) tell(other);
            }
        }
        for (Flight& flight : flights) {
            tester.checker.wait(flight, "an early call");
        }
        if (comm != MPI_COMM_WORLD) MPI_Comm_free(&comm);
    }
}

void run_reverse(Tester& tester)
{
    tester.session.phase("many requests, completed in reverse order");
    Flights flights = tester.start_many(MPI_COMM_WORLD, 32);
    for (std::size_t i = flights.size(); i > 0; --i) {
        tester.checker.wait(flights[i - 1], "in reverse order");
    }
}

// Other collectives come between the starts, and each of them ends while requests are active.
void run_between(Tester& tester)
{
    constexpr int rounds = 3;
    MPI_Comm comm = duplicate();
    for (int round = 0; round < rounds; ++round) {
        tester.session.phase("other collectives between, round %d", round);
        Flights flights = tester.start_many(comm, 2);
        for (const CountedCollective other : both_collectives) {
            tester.checker.blocking(*tester.maker.plain(other, comm, 5000),
                                    "a blocking call between");
            add(flights, tester.start_many(comm, 2));
        }
        MPI_Barrier(comm);
        int told = tester.rank == tester.ranks - 1 ? round : -1;
        MPI_Bcast(&told, 1, MPI_INT, tester.ranks - 1, comm);
        tester.session.check(told == round, "MPI_Bcast between: wrong result");
        add(flights, tester.start_many(comm, 2));
        int told_later = tester.rank == 0 ? round : -1, sum = 0;
        const int one = 1;
        MPI_Request others[2];
        MPI_Ibcast(&told_later, 1, MPI_INT, 0, comm, &others[0]);
        add(flights, tester.start_many(comm, 1));
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &others[1]);
        add(flights, tester.start_many(comm, 1));
        // The analyzer does not know all nonblocking collectives.
        // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
        MPI_Waitall(2, others, MPI_STATUSES_IGNORE);
        tester.session.check(told_later == round, "MPI_Ibcast between: wrong result");
        tester.session.check(sum == tester.ranks, "MPI_Iallreduce between: wrong result");
        for (Flight& flight : flights) {
            tester.checker.wait(flight, "between other collectives");
        }
    }
    MPI_Comm_free(&comm);
}

void run_duplicates(Tester& tester)
{
    tester.session.phase("a communicator and its duplicates");
    std::vector<MPI_Comm> comms = {MPI_COMM_WORLD, duplicate(), duplicate()};
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -tester.rank, &reversed);
    comms.push_back(reversed);
    Flights flights;
    for (int round = 0; round < 3; ++round) {
        for (const MPI_Comm comm : comms) {
            add(flights, tester.start_many(comm, 2));
        }
    }
    // Each rank completes them in another order.
    std::rotate(flights.begin(), flights.begin() + tester.rank % 7, flights.end());
    for (Flight& flight : flights) {
        tester.checker.wait(flight, "on duplicates");
    }
    for (std::size_t i = 1; i < comms.size(); ++i) {
        MPI_Comm_free(&comms[i]);
    }
}

void run_ways(Tester& tester)
{
    MPI_Comm alone = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, tester.rank, 0, &alone);
    for (const MPI_Comm comm : {MPI_COMM_WORLD, alone, MPI_COMM_SELF}) {
        tester.session.phase("in place, gaps, no bytes, %d ranks", size_of(comm));
        Flights flights;
        for (const std::size_t bytes : {0UL, 64UL, 6400UL, 64000UL}) {
            for (const bool in_place : {false, true}) {
                for (const bool has_gaps : {false, true}) {
                    const std::size_t item = has_gaps ? OperationMaker::item_of(bytes) : 1;
                    flights.push_back(tester.checker.start(
                        tester.make(comm, bytes, {in_place, has_gaps, item}), "a way"));
                }
            }
        }
        const bool has_sizes = tester.collective == CountedCollective::allgatherv;
        if (has_sizes) add(flights, start_with_empty_ranks(tester, comm));
        for (Flight& flight : flights) {
            tester.checker.wait(flight, "a way");
        }
    }
    MPI_Comm_free(&alone);
}

// Datatypes with gaps are packed. A small call comes right behind a large one.
void run_large(Tester& tester)
{
    constexpr std::size_t item = 8000;
    const auto total = static_cast<std::size_t>(tester.session.number("large", 16)) << 20;
    const std::size_t bytes = total / static_cast<std::size_t>(tester.ranks) / item * item;
    const Sizes sizes(static_cast<std::size_t>(tester.ranks), bytes);
    const bool is_small_first = tester.collective == CountedCollective::allgatherv;
    tester.session.phase("a large call, and a small one behind it");
    Flight large = tester.checker.start(
        tester.maker.make(tester.collective, MPI_COMM_WORLD, sizes, {is_small_first, true, item}),
        "a large call");
    Flight small = tester.start_plain(MPI_COMM_WORLD, 8, "a small call behind a large one");
    if (is_small_first) tester.checker.wait(small, "a small call behind a large one");
    tester.checker.wait(large, "a large call");
    if (!is_small_first) tester.checker.wait(small, "a small call behind a large one");
}

}  // namespace hier_test
