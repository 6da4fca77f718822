// SPDX-License-Identifier: BSD-3-Clause
// Counts the sockets that the first call opens on each rank: those of set-up and those of the call's route. --sockets is
// the limit. With --more a rank must open more than the limit.
#include "test/mpi/lib/support.hpp"

#include <filesystem>
#include <string>
#include <vector>

using namespace hier_test;

namespace {

long sockets()
{
    long count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code ignored;  // the directory's own descriptor
        const std::string name = std::filesystem::read_symlink(entry, ignored);
        count += name.starts_with("socket:") ? 1 : 0;
    }
    return count;
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "connections", {"expect", "min-bytes", "sockets", "more"});
    Observer observer(session);
    const long limit = session.number("sockets", 0);
    constexpr std::size_t bytes = 50000;
    const std::vector<unsigned char> send = Pattern(session.rank(), 1).bytes(bytes);
    std::vector<unsigned char> receive(bytes * static_cast<std::size_t>(session.size()), poison);

    // Open MPI's own connections come first.
    for (int i = 0; i < 3; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Alltoall(send.data(), 1, MPI_BYTE, receive.data(), 1, MPI_BYTE, MPI_COMM_WORLD);
    }
    const long before = sockets();
    session.ok(observer.allgather(send.data(), bytes, MPI_BYTE, receive.data(), bytes, MPI_BYTE,
                                  MPI_COMM_WORLD),
               "MPI_Allgather");
    MPI_Barrier(MPI_COMM_WORLD);
    const long opened = sockets() - before;
    check_blocks(session, receive.data(), bytes, session.size(), 1, "the first call");
    if (session.number("more", 0) != 0) {
        session.check(opened > limit, "%ld sockets, expected more than %ld", opened, limit);
    } else {
        session.check(opened <= limit, "%ld sockets, expected up to %ld", opened, limit);
    }
    return session.finish();
}
