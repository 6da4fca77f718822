// SPDX-License-Identifier: BSD-3-Clause
// The time of the first allgather on new communicators, and what they keep. The first communicator of
// a process finds nothing there yet.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "bench/lib/options/quantity.hpp"
#include "shared_memory.hpp"

namespace {

constexpr const char* usage =
    "usage: mpirun ... first_call [COMMUNICATORS [BYTES]]\n"
    "\n"
    "Duplicates MPI_COMM_WORLD (default: 8 times) and calls MPI_Allgather on\n"
    "each copy, with BYTES a rank (default: 64k).\n";

long descriptors()
{
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
}

struct Seconds {
    double first, second;
};

// The figures are those of the slowest rank.
Seconds time_calls(MPI_Comm comm, std::size_t bytes)
{
    int size = 0;
    MPI_Comm_size(comm, &size);
    const std::vector<char> send(bytes, 'x');
    std::vector<char> receive(bytes * static_cast<std::size_t>(size));
    double times[2];
    for (double& time : times) {
        MPI_Barrier(comm);
        const double begin = MPI_Wtime();
        MPI_Allgather(send.data(), static_cast<int>(bytes), MPI_CHAR, receive.data(),
                      static_cast<int>(bytes), MPI_CHAR, comm);
        time = MPI_Wtime() - begin;
    }
    MPI_Allreduce(MPI_IN_PLACE, times, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return {times[0], times[1]};
}

void run(int count, std::size_t bytes)
{
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::vector<MPI_Comm> comms(static_cast<std::size_t>(count));
    if (rank == 0)
        std::printf("%d ranks, %zu bytes a rank\n%12s %12s %12s %12s %12s\n", size, bytes,
                    "communicator", "first ms", "second ms", "shared KiB", "descriptors");
    for (int i = 0; i < count; i++) {
        MPI_Comm& comm = comms[static_cast<std::size_t>(i)];
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        const Seconds seconds = time_calls(comm, bytes);
        if (rank == 0)
            std::printf("%12d %12.2f %12.2f %12zu %12ld\n", i + 1, seconds.first * 1e3,
                        seconds.second * 1e3, bench::shared_bytes_of_node() >> 10, descriptors());
    }
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    const auto count = argc > 1 ? bench::parse_count(argv[1], 1, 10000) : 8;
    const auto bytes = argc > 2 ? bench::parse_size(argv[2]) : std::size_t{64} << 10;
    if (count && bytes && *bytes > 0 && argc <= 3) {
        run(static_cast<int>(*count), *bytes);
    } else {
        std::fputs(usage, stderr);
    }
    MPI_Finalize();
    return count && bytes && argc <= 3 ? 0 : 2;
}
