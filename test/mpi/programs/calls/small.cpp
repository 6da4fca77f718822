// SPDX-License-Identifier: BSD-3-Clause
// A communicator makes its team after a number of small calls. All its ranks must count the same calls, whatever else
// each rank has done.
#include "test/mpi/lib/support.hpp"

#include <vector>

using namespace hier_test;

namespace {

void gather(Session& session, MPI_Comm comm, std::size_t bytes, int calls, int round)
{
    const int ranks = size_of(comm);
    std::vector<unsigned char> receive(bytes * static_cast<std::size_t>(ranks));
    for (int i = 0; i < calls; ++i) {
        const int call = round * calls + i;
        const std::vector<unsigned char> send = Pattern(rank_of(comm), call).bytes(bytes);
        const auto count = static_cast<int>(bytes);
        session.ok(
            MPI_Allgather(send.data(), count, MPI_BYTE, receive.data(), count, MPI_BYTE, comm),
            "MPI_Allgather");
        check_blocks(session, receive.data(), bytes, ranks, call, "small calls");
    }
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "small", {"expect", "min-bytes"});
    Observer observer(session);
    const Counters::Values before = observer.read();
    constexpr int rounds = 10;
    // The larger size is that of the first message of set-up. If the two were mixed up, MPI would not report
    // truncation.
    constexpr std::size_t sizes[] = {4, 32};
    for (int round = 0; round < rounds; ++round) {
        for (const std::size_t bytes : sizes) {
            session.phase("round %d, %zu bytes a rank", round, bytes);
            const bool takes_part = session.rank() <= round % session.size();
            MPI_Comm some = MPI_COMM_NULL;
            MPI_Comm all = MPI_COMM_NULL;
            MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, session.rank(), &some);
            if (takes_part) {
                gather(session, some, bytes, 1 + round, round);
                MPI_Comm_free(&some);
            }
            MPI_Comm_dup(MPI_COMM_WORLD, &all);
            gather(session, all, bytes, 40, round);
            MPI_Comm_free(&all);
        }
    }
    const Counters::Values after = observer.read();
    session.check(observer.expect() == Expect::any || after.fallbacks > before.fallbacks,
                  "no call was handed on: this tests nothing");
    return session.finish();
}
