// SPDX-License-Identifier: BSD-3-Clause
// Persistent allgathers of both forms: requests that are started again and again, with other contents
// each time. Each byte is compared, with those in gaps and around the buffers.
//
//   --starts N   of each request [10]
//   --seed S     of the kinds of memory and the alignments [1]
#include "requests.hpp"

#include "test/mpi/lib/persistent.hpp"

#include <algorithm>

using namespace hier_test;

namespace {

Flight init_plain(Tester& tester, MPI_Comm comm, std::size_t bytes)
{
    return tester.checker.init(tester.maker.plain(tester.collective, comm, bytes),
                               "a persistent request");
}

void free_all(Tester& tester, Flights& flights)
{
    for (Flight& flight : flights) {
        tester.checker.free_inactive(flight, "a request that is not active");
    }
}

// Requests of several sizes and ways on a communicator.
Flights init_ways(Tester& tester, MPI_Comm comm)
{
    Flights flights;
    for (const std::size_t bytes : {8UL, 4800UL, 96000UL}) {
        for (const bool in_place : {false, true}) {
            for (const bool has_gaps : {false, true}) {
                const std::size_t item = has_gaps ? OperationMaker::item_of(bytes) : 1;
                flights.push_back(tester.checker.init(
                    tester.make(comm, bytes, {in_place, has_gaps, item}), "a persistent request"));
            }
        }
    }
    return flights;
}

void run_alone(Tester& tester, int starts)
{
    MPI_Comm alone = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, tester.rank, 0, &alone);
    for (const MPI_Comm comm : {MPI_COMM_WORLD, alone, MPI_COMM_SELF}) {
        tester.session.phase("one request at a time, on %d ranks", size_of(comm));
        Flights flights = init_ways(tester, comm);
        for (Flight& flight : flights) {
            for (int i = 0; i < starts; ++i) {
                tester.checker.restart(flight, "a start");
                tester.checker.wait(flight, "a persistent request alone");
            }
        }
        free_all(tester, flights);
    }
    MPI_Comm_free(&alone);
}

// All requests are active at once. Each rank completes them in another order.
void run_together(Tester& tester, int starts)
{
    MPI_Comm other = duplicate();
    Flights flights = init_ways(tester, MPI_COMM_WORLD);
    add(flights, init_ways(tester, other));
    for (int i = 0; i < starts; ++i) {
        const bool at_once = (i % 2 == 0) == (tester.collective == CountedCollective::allgather);
        tester.session.phase("many requests, started %s", at_once ? "at once" : "one by one");
        std::vector<MPI_Request> requests;
        for (Flight& flight : flights) {
            tester.checker.refill(flight);
            requests.push_back(flight.request);
        }
        const auto count = static_cast<int>(requests.size());
        if (at_once) {
            tester.session.ok(MPI_Startall(count, requests.data()), "MPI_Startall");
        } else {
            for (MPI_Request& request : requests) {
                tester.session.ok(MPI_Start(&request), "MPI_Start");
            }
        }
        if ((i + tester.rank) % 3 == 0) {
            tester.session.ok(MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE),
                              "MPI_Waitall");
        }
        for (std::size_t k = 0; k < flights.size(); ++k) {
            flights[k].request = requests[k];
        }
        // A completed request is inactive, and waiting for it again does no harm.
        for (std::size_t k = 0; k < flights.size(); ++k) {
            const std::size_t which = (i + tester.rank) % 3 == 1 ? flights.size() - 1 - k : k;
            tester.checker.wait(flights[which], "many persistent requests");
        }
    }
    free_all(tester, flights);
    MPI_Comm_free(&other);
}

// A start does not wait for the others: a rank starts, and the others start when they have heard of
// it.
void run_first_start(Tester& tester)
{
    for (const std::size_t bytes : {8UL, 65536UL, 1UL << 20}) {
        tester.session.phase("first starts, %zu bytes a rank", bytes);
        MPI_Comm comm = duplicate();
        Flight flight = init_plain(tester, comm, bytes);
        for (int early = 0; early < tester.ranks; ++early) {
            if (tester.rank != early) hear(early);
            tester.checker.restart(flight, "a first start");
            for (int other = 0; other < tester.ranks && tester.rank == early; ++other) {
                if (other != early) tell(other);
            }
            tester.checker.wait(flight, "a first start");
        }
        tester.checker.free_inactive(flight, "a request that is not active");
        MPI_Comm_free(&comm);
    }
}

// Blocking and nonblocking calls come between starts, and complete while requests are active.
void run_between(Tester& tester, int starts)
{
    MPI_Comm comm = duplicate();
    Flights flights;
    for (const std::size_t bytes : {100UL, 20000UL, 3UL}) {
        flights.push_back(init_plain(tester, comm, bytes));
    }
    for (int i = 0; i < starts; ++i) {
        tester.session.phase("other calls between, start %d", i);
        Flights others;
        for (Flight& flight : flights) {
            tester.checker.restart(flight, "a start between other calls");
            add(others, tester.start_many(comm, 1));
            tester.checker.blocking(*tester.maker.plain(tester.collective, comm, 700),
                                    "a blocking call between starts");
        }
        MPI_Barrier(comm);
        // In turn, the persistent ones are completed first.
        for (const bool is_persistent : {i % 2 == 0, i % 2 != 0}) {
            for (Flight& flight : is_persistent ? flights : others) {
                tester.checker.wait(flight, "among other calls");
            }
        }
    }
    free_all(tester, flights);
    MPI_Comm_free(&comm);
}

void run_never_started(Tester& tester)
{
    tester.session.phase("requests that are never started");
    MPI_Comm comm = duplicate();
    Flights flights = init_ways(tester, comm);
    tester.checker.blocking(*tester.maker.plain(tester.collective, comm, 3000),
                            "beside requests that are not active");
    for (Flight& flight : flights) {
        int flag = 0;
        tester.session.ok(MPI_Test(&flight.request, &flag, MPI_STATUS_IGNORE), "MPI_Test");
        tester.session.check(flag != 0 && flight.request != MPI_REQUEST_NULL,
                             "MPI_Test of a request that is not active");
        tester.session.ok(MPI_Wait(&flight.request, MPI_STATUS_IGNORE), "MPI_Wait");
    }
    free_all(tester, flights);
    MPI_Comm_free(&comm);
}

// Open MPI 4.1 forgets to keep the datatypes, so this is for hier alone.
void run_freed_types(Tester& tester, int starts)
{
    tester.session.phase("datatypes freed after the initialization");
    Flights flights;
    for (const std::size_t bytes : {16UL, 4096UL, 400000UL}) {
        for (const bool in_place : {false, true}) {
            const std::size_t item = OperationMaker::item_of(bytes);
            auto operation = tester.make(MPI_COMM_WORLD, bytes, {in_place, true, item});
            operation->free_types_early();
            flights.push_back(tester.checker.init(std::move(operation), "with freed datatypes"));
        }
    }
    for (int i = 0; i < starts; ++i) {
        for (Flight& flight : flights) {
            tester.checker.restart(flight, "with freed datatypes");
        }
        for (Flight& flight : flights) {
            tester.checker.wait(flight, "with freed datatypes");
        }
    }
    free_all(tester, flights);
}

// Nobody, or not everybody, sends bytes.
void run_without_bytes(Tester& tester, int starts)
{
    tester.session.phase("without bytes");
    Flights flights;
    flights.push_back(init_plain(tester, MPI_COMM_WORLD, 0));
    if (tester.collective == CountedCollective::allgatherv) {
        for (std::size_t empty = 0; empty < 2; ++empty) {
            Sizes sizes(static_cast<std::size_t>(tester.ranks), 5000);
            for (std::size_t rank = empty; rank < sizes.size(); rank += 2) {
                sizes[rank] = 0;
            }
            flights.push_back(tester.checker.init(
                tester.maker.make(tester.collective, MPI_COMM_WORLD, sizes, {}), "empty blocks"));
        }
    }
    for (int i = 0; i < starts; ++i) {
        for (Flight& flight : flights) {
            tester.checker.restart(flight, "empty blocks");
        }
        for (Flight& flight : flights) {
            tester.checker.wait(flight, "empty blocks");
        }
    }
    free_all(tester, flights);
}

void run_all(Tester& tester, int starts)
{
    run_alone(tester, starts);
    run_together(tester, starts);
    run_first_start(tester);
    run_between(tester, starts);
    run_never_started(tester);
    run_without_bytes(tester, starts);
    if (tester.observer.expect() == Expect::hier && tester.ranks > 1) {
        run_freed_types(tester, starts);
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const std::string program = std::string(fuzz::prefix_of_programs) + "persistent";
    Session session(argc, argv, program.c_str(), {"expect", "starts", "seed"});
    if (!has_persistent) {
        MPI_Finalize();
        if (session.rank() == 0) {
            std::printf("this MPI library has no persistent collectives\n");
        }
        return 77;
    }
    Observer observer(session);
    fuzz::choose_device(session.rank());
    {
        Tester tester(session, observer);
        for (const CountedCollective collective : both_collectives) {
            tester.collective = collective;
            run_all(tester, static_cast<int>(session.number("starts", 10)));
        }
        tester.checker.check_servers();
    }
    observer.close();
    return session.finish();
}
