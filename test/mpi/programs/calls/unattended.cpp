// SPDX-License-Identifier: BSD-3-Clause
// A call that hier's thread has ended is over for MPI, too: MPI_Wait returns without a pass of Open MPI's progress loop.
//
//   --bytes N  of a rank's block [65536]
#include "test/mpi/lib/support.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <vector>

using namespace hier_test;

namespace {

long passes = 0;

// Passes of the loop in MPI_Wait, some time after the call's start.
long passes_of_wait(Session& session, std::size_t bytes, int call)
{
    const Pattern pattern(session.rank(), call);
    const std::vector<unsigned char> send = pattern.bytes(bytes);
    std::vector<unsigned char> receive(bytes * static_cast<std::size_t>(session.size()));
    const auto count = static_cast<int>(bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    session.ok(MPI_Iallgather(send.data(), count, MPI_BYTE, receive.data(), count, MPI_BYTE,
                              MPI_COMM_WORLD, &request),
               "MPI_Iallgather");
    constexpr useconds_t pause_us = 20000;
    usleep(pause_us);
    const long before = passes;
    session.ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    const long made = passes - before;
    check_blocks(session, receive.data(), bytes, session.size(), call, "unattended");
    return made;
}

}  // namespace

// In front of Open MPI's own, which returns nothing in 4.1 and an int in later versions.
extern "C" int opal_progress();
int opal_progress()
{
    static auto* const next = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "opal_progress"));
    ++passes;
    return next();
}

int main(int argc, char** argv)
{
    Session session(argc, argv, "unattended", {"expect", "bytes"});
    Observer observer(session);
    const auto bytes = static_cast<std::size_t>(session.number("bytes", 65536));
    // On a busy machine the thread may be late.
    constexpr int most = 300;
    int is_seen = 0, is_seen_by_all = 0;
    for (int call = 0; call < most && is_seen_by_all == 0; ++call) {
        session.phase("call %d", call);
        is_seen = passes_of_wait(session, bytes, call) == 0 ? 1 : is_seen;
        MPI_Allreduce(&is_seen, &is_seen_by_all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    session.check(passes > 0, "the program does not stand in front of opal_progress");
    session.check(is_seen == 1, "MPI_Wait makes passes in each of %d calls", most);
    observer.close();
    return session.finish();
}
