// SPDX-License-Identifier: BSD-3-Clause
// A call that hier's thread has ended is over for MPI, too: MPI_Wait returns without a pass of Open MPI's progress loop.
// But a call with datatypes of the application's lets them go in that loop.
//
//   --bytes N  of a rank's block [65536]
#include "test/mpi/lib/passes.hpp"
#include "test/mpi/lib/support.hpp"

#include <malloc.h>
#include <unistd.h>

#include <vector>

using namespace hier_test;

namespace {

// One call, with the thread alone for some time. The datatype is freed at once. Returns the passes of the loop in MPI_Wait.
long call_unattended(Session& session, std::size_t bytes, int call, bool has_own_type)
{
    const Pattern pattern(session.rank(), call);
    const std::vector<unsigned char> send = pattern.bytes(bytes);
    std::vector<unsigned char> receive(bytes * static_cast<std::size_t>(session.size()));
    MPI_Datatype type = MPI_BYTE;
    if (has_own_type) {
        MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type);
        MPI_Type_commit(&type);
    }
    const int count = has_own_type ? 1 : static_cast<int>(bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    session.ok(MPI_Iallgather(send.data(), count, type, receive.data(), count, type, MPI_COMM_WORLD,
                              &request),
               "MPI_Iallgather");
    if (has_own_type) {
        MPI_Type_free(&type);
    }
    constexpr useconds_t pause_us = 20000, short_pause_us = 3000;
    usleep(has_own_type ? short_pause_us : pause_us);
    const long before = passes;
    session.ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    const long made = passes - before;
    check_blocks(session, receive.data(), bytes, session.size(), call, "unattended");
    return made;
}

// Other processors leave it to the progress loop.
#if defined(__x86_64__)
constexpr bool thread_completes = true;
#else
constexpr bool thread_completes = false;
#endif

std::size_t allocated() { return mallinfo2().uordblks; }

// What 200 calls have allocated and not freed.
long growth_by_types(Session& session, std::size_t bytes, int first_call)
{
    constexpr int warm_up = 50, calls = 200;
    std::size_t before = 0;
    for (int i = 0; i < warm_up + calls; ++i) {
        if (i == warm_up) {
            before = allocated();
        }
        (void)call_unattended(session, bytes, first_call + i, true);
    }
    return static_cast<long>(allocated()) - static_cast<long>(before);
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "unattended", {"expect", "bytes"});
    Observer observer(session);
    const auto bytes = static_cast<std::size_t>(session.number("bytes", 65536));
    // On a busy machine the thread may be late.
    constexpr int most = 300;
    int is_seen = 0, is_seen_by_all = 0;
    for (int call = 0; call < most && is_seen_by_all == 0 && thread_completes; ++call) {
        session.phase("call %d", call);
        is_seen = call_unattended(session, bytes, call, false) == 0 ? 1 : is_seen;
        MPI_Allreduce(&is_seen, &is_seen_by_all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    session.check(passes > 0 || !thread_completes,
                  "the program does not stand in front of opal_progress");
    session.check(is_seen == 1 || !thread_completes, "MPI_Wait makes passes in each of %d calls",
                  most);
    session.phase("the progress loop");
    // What else a program has started needs the loop, even if no MPI_Wait does.
    constexpr int many = 40;
    const long before = passes;
    for (int call = 0; call < many; ++call) {
        (void)call_unattended(session, bytes, most + call, false);
    }
    session.check(passes > before, "no pass of the progress loop in %d calls", many);
    session.phase("datatypes of the application's");
    // A datatype takes some 1000 bytes.
    constexpr long most_left = 40000;
    const long left = growth_by_types(session, bytes, most + many);
    session.check(left < most_left, "200 calls with datatypes leave %ld bytes", left);
    observer.close();
    return session.finish();
}
