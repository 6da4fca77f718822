// SPDX-License-Identifier: BSD-3-Clause
// A program calls nothing but small allgathers. One rank is always the last to enter, so it never waits in a call. Open
// MPI must still do its other work on that rank. Here this work is a message that goes in parts.
#include "test/mpi/lib/support.hpp"

#include <chrono>
#include <vector>

using namespace hier_test;

namespace {

// Stands for computing.
void be_late()
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    while (std::chrono::steady_clock::now() < end) {
    }
}

// Every rank says a number. Returns that of rank 1.
int gather(Session& session, int said)
{
    std::vector<int> all(static_cast<std::size_t>(session.size()));
    session.ok(MPI_Allgather(&said, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD),
               "MPI_Allgather");
    return all[1];
}

// The number of calls until the message has come; `max_calls` if it has not come.
int calls_until_it_is_there(Session& session, MPI_Request& request, int max_calls)
{
    for (int call = 1; call < max_calls; ++call) {
        int is_there = 1;
        if (session.rank() == 1) MPI_Test(&request, &is_there, MPI_STATUS_IGNORE);
        if (session.rank() == 0) be_late();
        if (gather(session, is_there) == 1) return call;
    }
    return max_calls;
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "starved", {"expect"});
    Observer observer(session);
    gather(session, 1);  // makes the team, which takes the messages
    const Counters::Values before = observer.read();
    std::vector<char> message(8 << 20, 'x');
    MPI_Request request = MPI_REQUEST_NULL;
    if (session.rank() == 0)
        MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_CHAR, 1, 0, MPI_COMM_WORLD,
                  &request);
    if (session.rank() == 1)
        MPI_Irecv(message.data(), static_cast<int>(message.size()), MPI_CHAR, 0, 0, MPI_COMM_WORLD,
                  &request);
    constexpr int max_calls = 100;
    const int calls = calls_until_it_is_there(session, request, max_calls);
    if (session.rank() == 0) std::printf("# figure: starved: %d calls\n", calls);
    session.check(calls < max_calls, "a message has not come after %d allgathers", max_calls);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const auto served = observer.read().served - before.served;
    session.check(observer.expect() == Expect::any ||
                      served == static_cast<unsigned long long>(calls),
                  "hier served %llu of %d calls", served, calls);
    return session.finish();
}
