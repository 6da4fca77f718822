// SPDX-License-Identifier: BSD-3-Clause
// A child of fork() ends by exit(), which runs the handlers for the end of the program. This must not harm the parent:
// its connections still work, even if the communicators that needed them are gone.
#include "test/mpi/lib/support.hpp"

#include <cstdlib>
#include <vector>

#include <sys/wait.h>

using namespace hier_test;

namespace {

void fork_and_exit(Session& session)
{
    const pid_t child = fork();
    if (child == 0) {
        std::exit(0);
    }
    int status = 0;
    session.check(child > 0 && waitpid(child, &status, 0) == child && status == 0,
                  "a child ended with status %x", static_cast<unsigned>(status));
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "children", {"expect", "min-bytes"});
    Observer observer(session);
    constexpr int bytes = 70001;
    std::vector<unsigned char> receive(static_cast<std::size_t>(bytes) *
                                       static_cast<std::size_t>(session.size()));
    for (int call = 0; call < 4; ++call) {
        session.phase("call %d", call);
        const std::vector<unsigned char> send = Pattern(session.rank(), call).bytes(bytes);
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        session.ok(
            observer.allgather(send.data(), bytes, MPI_BYTE, receive.data(), bytes, MPI_BYTE, comm),
            "MPI_Allgather");
        MPI_Comm_free(&comm);
        check_blocks(session, receive.data(), bytes, session.size(), call, "children");
        if (call % session.size() == session.rank() || call == 2) {
            fork_and_exit(session);
        }
    }
    return session.finish();
}
