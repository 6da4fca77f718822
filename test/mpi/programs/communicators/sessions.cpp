// SPDX-License-Identifier: BSD-3-Clause
// MPI sessions, one after the other, without MPI_Init or inside it. Each session opens and closes the component. The
// communicators are made from groups.
#include "test/mpi/lib/pattern.hpp"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#include <mpi.h>

#if OMPI_MAJOR_VERSION < 5

int main()
{
    std::puts("MPI sessions came with Open MPI 5");
    return 77;
}

#else

using namespace hier_test;

namespace {

// The number of wrong blocks.
int gather(MPI_Comm comm, int call)
{
    constexpr std::size_t block = 100003;
    int rank = 0, ranks = 0, wrong = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const std::vector<unsigned char> send = Pattern(rank, call).bytes(block);
    std::vector<unsigned char> receive(block * static_cast<std::size_t>(ranks));
    if (MPI_Allgather(send.data(), block, MPI_BYTE, receive.data(), block, MPI_BYTE, comm) !=
        MPI_SUCCESS) {
        return ranks;
    }
    for (int from = 0; from < ranks; ++from) {
        const unsigned char* at = receive.data() + static_cast<std::size_t>(from) * block;
        wrong += Pattern(from, call).mismatch(at, block) ? 1 : 0;
    }
    return wrong;
}

int one_session(int number)
{
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm whole = MPI_COMM_NULL, half = MPI_COMM_NULL;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) != MPI_SUCCESS) {
        return 1;
    }
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    const std::string tag = "session " + std::to_string(number);
    MPI_Comm_create_from_group(group, tag.c_str(), MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &whole);
    int rank = 0, wrong = 0;
    MPI_Comm_rank(whole, &rank);
    MPI_Comm_split(whole, rank % 2, rank, &half);
    for (int call = 0; call < 5; ++call) {
        wrong += gather(whole, call) + gather(half, call);
    }
    MPI_Comm_free(&half);
    MPI_Comm_free(&whole);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    return wrong;
}

}  // namespace

int main(int argc, char** argv)
{
    const bool is_inside = argc > 1 && std::strcmp(argv[1], "--inside") == 0;
    int wrong = 0;
    if (is_inside) {
        MPI_Init(&argc, &argv);
    }
    for (int number = 0; number < 3; ++number) {
        wrong += one_session(number);
    }
    if (is_inside) {
        wrong += gather(MPI_COMM_WORLD, 0);
        MPI_Finalize();
    }
    std::printf("sessions: %s: %d blocks are wrong\n", wrong == 0 ? "ok" : "FAILED", wrong);
    return wrong == 0 ? 0 : 1;
}

#endif
