// SPDX-License-Identifier: BSD-3-Clause
// Communicators, requests and datatypes that are freed while calls are active; statuses; calls of
// wrong sizes.
#include "nonblocking.hpp"

namespace hier_test {

namespace {

void await_contents(const Flight& flight)
{
    constexpr double max_seconds = 75;
    const double started = MPI_Wtime();
    while (!flight->difference().empty() && MPI_Wtime() - started < max_seconds) {
        int flag = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}

// Open MPI sets MPI_ERROR where there are several statuses, and only if one of them is an error.
void check_empty(Tester& tester, const MPI_Status& status, std::size_t which)
{
    int bytes = -1, elements = -1, cancelled = -1;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    MPI_Get_elements(&status, MPI_INT, &elements);
    MPI_Test_cancelled(&status, &cancelled);
    tester.session.check(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG &&
                             bytes == 0 && elements == 0 && cancelled == 0,
                         "status %zu: source %d, tag %d, %d bytes, cancelled %d", which,
                         status.MPI_SOURCE, status.MPI_TAG, bytes, cancelled);
    tester.session.check(status.MPI_ERROR == MPI_SUCCESS, "status %zu: error %d", which,
                         status.MPI_ERROR);
}

int start_bytes(Tester& tester, const void* send, int sent, void* receive, const Blocks& to,
                MPI_Comm comm, MPI_Request* request)
{
    tester.checker.count(counted(tester.collective, Manner::nonblocking), 1);
    return tester.collective == CountedCollective::allgather
               ? MPI_Iallgather(send, sent, MPI_BYTE, receive, to.items.front(), MPI_BYTE, comm,
                                request)
               : MPI_Iallgatherv(send, sent, MPI_BYTE, receive, to.items.data(),
                                 to.displacements.data(), MPI_BYTE, comm, request);
}

}  // namespace

// The calls that are active go on. New communicators come before these are over.
void run_freed_communicator(Tester& tester)
{
    for (const std::size_t bytes : {8UL, 5000UL, 300000UL}) {
        tester.session.phase("a communicator freed at once, %zu bytes a rank", bytes);
        MPI_Comm freed = duplicate();
        Flights flights;
        flights.push_back(tester.start_plain(freed, bytes, "before the freeing"));
        flights.push_back(tester.start_plain(freed, bytes / 2, "before the freeing"));
        MPI_Comm_free(&freed);
        flights.push_back(tester.start_plain(MPI_COMM_WORLD, bytes, "after the freeing"));
        MPI_Comm next = duplicate();
        tester.checker.blocking(*tester.maker.plain(tester.collective, next, bytes),
                                "after the freeing");
        flights.push_back(tester.start_plain(next, bytes, "after the freeing"));
        for (Flight& flight : flights) {
            tester.checker.wait(flight, "around the freeing of a communicator");
        }
        MPI_Comm_free(&next);
    }
}

// The standard forbids to free such a request. So a module may refuse it. Otherwise the call
// goes on, and a rank sees its end by the contents alone.
void run_freed_requests(Tester& tester)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (const std::size_t bytes : {8UL, 5000UL, 300000UL}) {
        tester.session.phase("requests freed while they are active, %zu bytes a rank", bytes);
        Flights flights;
        for (int i = 0; i < 4; ++i) {
            flights.push_back(tester.start_plain(MPI_COMM_WORLD, bytes, "to be freed"));
        }
        for (Flight& flight : flights) {
            const bool is_free = is_error(MPI_Request_free(&flight.request), MPI_SUCCESS);
            tester.session.check(is_free == (flight.request == MPI_REQUEST_NULL),
                                 "MPI_Request_free: success and the request do not agree");
        }
        tester.checker.blocking(*tester.maker.plain(tester.collective, MPI_COMM_WORLD, bytes),
                                "after freed ones");
        for (Flight& flight : flights) {
            if (flight.request == MPI_REQUEST_NULL) await_contents(flight);
            tester.checker.wait(flight, "freed while it was active");
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

void run_freed_types(Tester& tester)
{
    tester.session.phase("datatypes freed at once");
    Flights flights;
    for (const std::size_t bytes : {16UL, 4096UL, 400000UL}) {
        for (const bool in_place : {false, true}) {
            const std::size_t item = OperationMaker::item_of(bytes);
            auto operation = tester.make(MPI_COMM_WORLD, bytes, {in_place, true, item});
            operation->free_types_early();
            flights.push_back(tester.checker.start(std::move(operation), "with freed datatypes"));
        }
    }
    for (Flight& flight : flights) {
        tester.checker.wait(flight, "with freed datatypes");
    }
}

// The status of a completed request is empty.
void run_statuses(Tester& tester)
{
    tester.session.phase("statuses");
    for (const std::size_t bytes : {8UL, 70001UL}) {
        Flights flights;
        for (int i = 0; i < 5; ++i) {
            flights.push_back(tester.start_plain(MPI_COMM_WORLD, bytes, "with a status"));
        }
        MPI_Status statuses[5] = {};
        int flag = 0, index = 0;
        MPI_Wait(&flights[0].request, &statuses[0]);
        while (flag == 0) {
            MPI_Test(&flights[1].request, &flag, &statuses[1]);
        }
        MPI_Waitany(1, &flights[2].request, &index, &statuses[2]);
        MPI_Request last[] = {flights[3].request, flights[4].request};
        for (MPI_Status* status = &statuses[3]; status < statuses + 5; ++status) {
            status->MPI_ERROR = MPI_ERR_OTHER;
        }
        MPI_Waitall(2, last, &statuses[3]);
        for (std::size_t i = 0; i < flights.size(); ++i) {
            tester.checker.check(*flights[i].operation, "with a status");
            check_empty(tester, statuses[i], i);
        }
    }
}

// One rank sends more or fewer bytes than the others receive. It gets the error when the call
// is over, and the others get all other blocks.
void run_wrong_size(Tester& tester, int offender, bool is_more)
{
    MPI_Comm comm = duplicate();
    // Open MPI 4.1 reports the errors of such requests on the world.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (const int bytes : {40, 5000, 300000}) {
        tester.session.phase("rank %d sends %s than %d bytes", offender, is_more ? "more" : "fewer",
                             bytes);
        const bool is_mine = tester.rank == offender;
        const int sent = !is_mine ? bytes : is_more ? 2 * bytes + 1 : bytes - 3;
        const auto block = static_cast<std::size_t>(bytes);
        const auto send = Pattern(tester.rank, bytes).bytes(2 * block + 1);
        GuardedBuffer receive(block * static_cast<std::size_t>(tester.ranks));
        const Blocks to = Blocks::equal(bytes, tester.ranks);
        MPI_Request request = MPI_REQUEST_NULL;
        tester.session.ok(
            start_bytes(tester, send.data(), sent, receive.data(), to, comm, &request),
            "a call of a wrong size");
        Flight next = tester.start_plain(comm, 64, "behind a call of a wrong size");
        const int error = is_more ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT;
        // The analyzer does not see that the request is active.
        // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
        const int status = MPI_Wait(&request, MPI_STATUS_IGNORE);
        tester.session.check(is_error(status, is_mine ? error : MPI_SUCCESS),
                             "rank %d sends a wrong size: MPI_Wait returns %d", offender, status);
        tester.session.check(receive.guards_intact(), "written beside the buffer");
        for (int from = 0; from < tester.ranks && !is_mine; ++from) {
            const auto wrong =
                Pattern(from, bytes)
                    .mismatch(receive.data() + static_cast<std::size_t>(from) * block, block);
            tester.session.check(from == offender || !wrong, "block of rank %d is wrong", from);
        }
        tester.checker.wait(next, "behind a call of a wrong size");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&comm);
}

}  // namespace hier_test
