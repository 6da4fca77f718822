// SPDX-License-Identifier: BSD-3-Clause
// Processes end and the others live on (mpirun --with-ft ulfm). The calls of the others fail as the standard says. A
// communicator of the processes that are left is served.
//
//   --mode kill     the last rank is killed between two calls, and the others enter the next one
//   --mode inside   the last rank is killed inside a call
//   --mode setup    the last rank is killed during the first call, which makes the team
//   --mode revoke   the last rank revokes the communicator while the others are in a call
//   --bytes N       bytes a rank
//   --call NAME     allgather, or iallgather, whose error comes from MPI_Wait [allgather]
//   --after N       for inside and setup: microseconds from the barrier before the calls to the kill
#include "test/mpi/lib/support.hpp"

#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <mpi-ext.h>
#include <unistd.h>

#ifndef OMPI_HAVE_MPI_EXT_FTMPI

int main()
{
    std::puts("this Open MPI has no ULFM");
    return 77;
}

#else

using namespace hier_test;

namespace {

constexpr int calls = 20;  // each with another pattern

class Job {
public:
    Job(Session& session, Observer& observer)
        : session_(session), observer_(observer),
          bytes_(static_cast<std::size_t>(session.number("bytes", 300007))),
          is_nonblocking_(session.text("call", "allgather") == std::string("iallgather"))
    {
    }

    int call(MPI_Comm comm, int number)
    {
        session_.phase("call %d", number);
        const std::vector<unsigned char> send = Pattern(rank_of(comm), number).bytes(bytes_);
        std::vector<unsigned char> receive(bytes_ * static_cast<std::size_t>(size_of(comm)));
        const int count = static_cast<int>(bytes_);
        int status = MPI_SUCCESS;
        if (is_nonblocking_) {
            MPI_Request request = MPI_REQUEST_NULL;
            status = MPI_Iallgather(send.data(), count, MPI_BYTE, receive.data(), count, MPI_BYTE,
                                    comm, &request);
            if (status == MPI_SUCCESS) status = MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            status = observer_.allgather(send.data(), count, MPI_BYTE, receive.data(), count,
                                         MPI_BYTE, comm);
        }
        if (status == MPI_SUCCESS) {
            check_blocks(session_, receive.data(), bytes_, size_of(comm), number, "ulfm");
        }
        return status;
    }

    void good_calls(MPI_Comm comm)
    {
        for (int number = 0; number < calls; ++number) {
            session_.ok(call(comm, number), "a call in which nothing is wrong");
        }
    }

    // If a rank dies in a call, another rank may still get all blocks of that call, and success.
    void calls_until_failure(MPI_Comm comm)
    {
        int status = MPI_SUCCESS;
        for (int number = calls; status == MPI_SUCCESS; ++number) {
            status = call(comm, number);
        }
        int error_class = MPI_SUCCESS;
        MPI_Error_class(status, &error_class);
        session_.check(error_class == MPIX_ERR_PROC_FAILED || error_class == MPIX_ERR_REVOKED,
                       "the call fails with error class %d", error_class);
    }

private:
    Session& session_;
    Observer& observer_;
    std::size_t bytes_;
    bool is_nonblocking_;
};

[[noreturn]] void die()
{
    (void)raise(SIGKILL);
    _exit(1);
}

void die_after(unsigned us)
{
    std::thread([us] {
        usleep(us);
        die();
    }).detach();
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "ulfm", {"expect", "min-bytes", "mode", "bytes", "after", "call"});
    Observer observer(session);
    Job job(session, observer);
    const std::string mode = session.text("mode", "");
    if (mode != "kill" && mode != "inside" && mode != "setup" && mode != "revoke") {
        session.usage("--mode does not take '%s'", mode.c_str());
    }
    const bool is_last = session.rank() == session.size() - 1;
    MPI_Comm comm, left;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (mode != "setup") {
        job.good_calls(comm);
    }
    MPI_Barrier(comm);
    if (is_last && (mode == "kill" || mode == "revoke")) {
        usleep(300000);  // the others are in the call
        if (mode == "kill") {
            die();
        }
        MPIX_Comm_revoke(comm);
    } else {
        if (is_last) {
            die_after(static_cast<unsigned>(session.number("after", 50000)));
        }
        job.calls_until_failure(comm);
    }

    session.phase("recovery");
    MPIX_Comm_revoke(comm);
    session.ok(MPIX_Comm_shrink(comm, &left), "MPIX_Comm_shrink");
    MPI_Comm_free(&comm);
    session.check(size_of(left) == session.size() - (mode == "revoke" ? 0 : 1), "%d are left",
                  size_of(left));
    job.good_calls(left);
    const bool is_good = session.verdict(left);
    observer.close();
    // After a process has died, Open MPI 5.0.7's MPI_Finalize sometimes hangs in PMIx's fence, also without coll/hier.
    // So the test ends after five seconds at the latest.
    (void)std::signal(SIGALRM, [](int) { _exit(0); });
    alarm(5);
    MPI_Finalize();
    return is_good ? 0 : 1;
}

#endif
