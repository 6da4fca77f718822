// SPDX-License-Identifier: BSD-3-Clause
// Measures the cost of the first call on a communicator: time, memory and descriptors. The figures are only printed.
// The test checks the results of the calls alone.
#include "test/mpi/lib/resources.hpp"
#include "test/mpi/lib/support.hpp"

#include <algorithm>
#include <vector>

using namespace hier_test;

namespace {

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[(values.size() - 1) / 2];
}

}  // namespace

int main(int argc, char** argv)
{
    keep_pages_small();
    Session session(argc, argv, "setup_cost", {"expect", "min-bytes", "count", "bytes"});
    Observer observer(session);
    const auto count = static_cast<int>(std::max(1L, session.number("count", 8)));
    const auto bytes = static_cast<std::size_t>(session.number("bytes", 4096));
    const int ranks = session.size();

    // The buffers are made, touched and used once before, so that only the communicator is measured.
    const std::vector<unsigned char> send = Pattern(session.rank(), 1).bytes(bytes);
    std::vector<unsigned char> receive(bytes * static_cast<std::size_t>(ranks));
    std::vector<MPI_Comm> comms(static_cast<std::size_t>(count));
    std::vector<double> first;
    std::vector<double> second;
    const auto timed = [&](MPI_Comm comm) {
        std::fill(receive.begin(), receive.end(), poison);
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        session.ok(observer.allgather(send.data(), static_cast<int>(bytes), MPI_BYTE,
                                      receive.data(), static_cast<int>(bytes), MPI_BYTE, comm),
                   "MPI_Allgather");
        double mine = MPI_Wtime() - start;
        double slowest = 0;
        MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        check_blocks(session, receive.data(), bytes, ranks, 1, "setup_cost");
        return slowest * 1e3;
    };
    const double of_the_first = timed(MPI_COMM_WORLD);
    for (MPI_Comm& comm : comms) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const Resources before = Resources::now();
    for (const MPI_Comm comm : comms) {
        session.phase("first calls");
        first.push_back(timed(comm));
        second.push_back(timed(comm));
    }
    const Resources after = Resources::now();
    long long grown[3] = {after.resident_bytes - before.resident_bytes,
                          after.descriptors - before.descriptors,
                          after.shared_mappings - before.shared_mappings};
    long long max[3];
    MPI_Reduce(grown, max, 3, MPI_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (session.rank() == 0) {
        std::printf("figure: setup_cost: %d ranks: first call %.2f ms on COMM_WORLD, %.2f ms on "
                    "the %d next (median), then %.3f ms\n",
                    ranks, of_the_first, median(first), count, median(second));
        std::printf("figure: setup_cost: %d ranks: a communicator holds %lld bytes of resident "
                    "memory, %.1f descriptors, %.1f shared mappings (most of any rank)\n",
                    ranks, max[0] / count, static_cast<double>(max[1]) / count,
                    static_cast<double>(max[2]) / count);
    }
    for (MPI_Comm& comm : comms) {
        MPI_Comm_free(&comm);
    }
    return session.finish();
}
