// SPDX-License-Identifier: BSD-3-Clause
// Processes gather with processes that they have spawned, and the spawned ones end. The others go on. Messages to the
// processes that have ended must do no harm.
#include "test/mpi/lib/support.hpp"

#include <vector>

#include <unistd.h>

using namespace hier_test;

namespace {

void gather(Session& session, Observer& observer, MPI_Comm comm, const char* what)
{
    for (const int bytes : {20000, 100001}) {
        const auto block = static_cast<std::size_t>(bytes);
        std::vector<unsigned char> receive(block * static_cast<std::size_t>(size_of(comm)));
        for (int call = 0; call < 3; ++call) {
            session.phase("%s, %d bytes a rank, call %d", what, bytes, call);
            const std::vector<unsigned char> send = Pattern(rank_of(comm), call).bytes(block);
            session.ok(observer.allgather(send.data(), bytes, MPI_BYTE, receive.data(), bytes,
                                          MPI_BYTE, comm),
                       "MPI_Allgather");
            check_blocks(session, receive.data(), block, size_of(comm), call, what);
        }
    }
}

}  // namespace

int main(int argc, char** argv)
{
    if (OMPI_MAJOR_VERSION > 4) {
        std::puts("MPI_Comm_spawn hangs in Open MPI 5.0.7 (Debian 13), without hier, too");
        return 77;
    }
    Session session(argc, argv, "spawned", {"expect", "min-bytes"});
    Observer observer(session);
    MPI_Comm parents = MPI_COMM_NULL;
    MPI_Comm_get_parent(&parents);
    const bool is_child = parents != MPI_COMM_NULL;
    // The merged communicator is freed once while its other half still runs, and once long after that has ended.
    for (int round = 0; round < (is_child ? 1 : 2); ++round) {
        MPI_Comm others = parents;
        MPI_Comm all = MPI_COMM_NULL;
        if (!is_child) {
            MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others,
                           MPI_ERRCODES_IGNORE);
        }
        MPI_Intercomm_merge(others, is_child ? 1 : 0, &all);
        gather(session, observer, all, "all");
        const bool frees_late = round == 1 && !is_child;
        if (!frees_late) MPI_Comm_free(&all);
        MPI_Comm_disconnect(&others);
        if (!is_child) sleep(4);
        if (frees_late) MPI_Comm_free(&all);
        if (!is_child) gather(session, observer, MPI_COMM_WORLD, "the parents");
    }
    return session.finish();
}
