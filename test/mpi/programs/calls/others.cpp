// SPDX-License-Identifier: BSD-3-Clause
// All other collectives. The component provides MPI_Allgather alone, and everything else must still work: on COMM_WORLD
// and COMM_SELF, on inter-communicators and on topologies.
#include "test/mpi/lib/collectives.hpp"

#include <vector>

using namespace hier_test;

namespace {

// The two groups may differ in size. A rank gets the blocks of the other group.
void inter_communicator(Session& session, Observer& observer)
{
    const int ranks = session.size();
    const int rank = session.rank();
    if (ranks < 2) {
        return;
    }
    session.phase("inter-communicator");
    const int cut = (ranks + 2) / 3;
    const bool low = rank < cut;
    MPI_Comm half;
    MPI_Comm inter;
    MPI_Comm_split(MPI_COMM_WORLD, low ? 0 : 1, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? cut : 0, 7, &inter);
    const int others = low ? ranks - cut : cut;
    const int first = low ? cut : 0;
    const auto theirs = [first](int from, int i) { return value(first + from, 0, i); };

    const Ints mine = one_block([rank](int i) { return value(rank, 0, i); });
    Ints got(slots(others * block), -1);
    session.ok(observer.allgather(mine.data(), block, MPI_INT, got.data(), block, MPI_INT, inter),
               "MPI_Allgather on an inter-communicator");
    session.check(got == blocks(others, theirs),
                  "MPI_Allgather on an inter-communicator: wrong result");
    Ints sum(block, -1);
    MPI_Allreduce(mine.data(), sum.data(), block, MPI_INT, MPI_SUM, inter);
    session.check(sum == one_block([&](int i) {
                      int total = 0;
                      for (int from = 0; from < others; ++from) {
                          total += theirs(from, i);
                      }
                      return total;
                  }),
                  "MPI_Allreduce on an inter-communicator: wrong result");
    Ints told = rank == 0 ? mine : Ints(block, -1);
    MPI_Bcast(told.data(), block, MPI_INT, low ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, inter);
    if (!low) {
        session.check(told == one_block([](int i) { return value(0, 0, i); }),
                      "MPI_Bcast on an inter-communicator: wrong result");
    }
    MPI_Barrier(inter);

    MPI_Comm merged;
    MPI_Intercomm_merge(inter, low ? 1 : 0, &merged);
    Collectives(session, merged, "a merged inter-communicator").run();
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

// A ring of all ranks as a cartesian communicator. Each rank has two neighbours, which are equal on one or two ranks.
void neighbours(Session& session)
{
    session.phase("neighbourhood collectives");
    const int ranks = session.size();
    const int periodic = 1;
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &ring);
    const int rank = rank_of(ring);
    const int left = (rank + ranks - 1) % ranks;
    const int right = (rank + 1) % ranks;
    const Ints mine = one_block([rank](int i) { return value(rank, 0, i); });
    Ints got(slots(2 * block), -1);
    MPI_Neighbor_allgather(mine.data(), block, MPI_INT, got.data(), block, MPI_INT, ring);
    const Ints wanted =
        blocks(2, [&](int side, int i) { return value(side == 0 ? left : right, 0, i); });
    session.check(got == wanted, "MPI_Neighbor_allgather: wrong result");
    got.assign(slots(2 * block), -1);
    MPI_Request request;
    MPI_Ineighbor_allgather(mine.data(), block, MPI_INT, got.data(), block, MPI_INT, ring,
                            &request);
    // The analyzer does not know this nonblocking collective.
    MPI_Wait(&request, MPI_STATUS_IGNORE);  // NOLINT(clang-analyzer-optin.mpi.MPI-Checker)
    session.check(got == wanted, "MPI_Ineighbor_allgather: wrong result");
    // On rings of one or two ranks both neighbours are the same rank, and the messages may be swapped.
    if (ranks > 2) {
        const Ints send = blocks(2, [&](int side, int i) { return value(rank, side, i); });
        got.assign(slots(2 * block), -1);
        MPI_Neighbor_alltoall(send.data(), block, MPI_INT, got.data(), block, MPI_INT, ring);
        session.check(
            got == blocks(2, [&](int side,
                                 int i) { return value(side == 0 ? left : right, 1 - side, i); }),
            "MPI_Neighbor_alltoall: wrong result");
    }
    Collectives(session, ring, "a cartesian communicator").run();
    MPI_Comm_free(&ring);
}

// The first call of a communicator, which makes its team, while another operation on it is pending.
void beside_a_pending_idup(Session& session, Observer& observer)
{
    constexpr int count = 1000;
    Ints got(slots(count * session.size()), -1);
    const Ints mine(count, session.rank());
    for (int i = 0; i < 10; ++i) {
        session.phase("MPI_Comm_idup %d", i);
        MPI_Comm one;
        MPI_Comm two = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &one);
        MPI_Request pending;
        MPI_Comm_idup(one, &two, &pending);
        session.ok(observer.allgather(mine.data(), count, MPI_INT, got.data(), count, MPI_INT, one),
                   "MPI_Allgather beside a pending MPI_Comm_idup");
        session.check(got.front() == 0 && got.back() == session.size() - 1,
                      "MPI_Allgather beside a pending MPI_Comm_idup: wrong result");
        MPI_Wait(&pending, MPI_STATUS_IGNORE);
        MPI_Comm_free(&two);
        MPI_Comm_free(&one);
    }
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "others", {"expect", "min-bytes", "exscan-alone"});
    Observer observer(session);

    // A call that the component serves, so that it is not only loaded.
    Ints ranks(slots(session.size() * 1000), -1);
    const Ints mine(1000, session.rank());
    session.ok(
        observer.allgather(mine.data(), 1000, MPI_INT, ranks.data(), 1000, MPI_INT, MPI_COMM_WORLD),
        "MPI_Allgather");
    session.check(ranks[slots((session.size() - 1) * 1000)] == session.size() - 1,
                  "MPI_Allgather: wrong result");

    Collectives(session, MPI_COMM_WORLD, "COMM_WORLD").run();
    Collectives(session, MPI_COMM_SELF, "COMM_SELF").run();
    inter_communicator(session, observer);
    neighbours(session);
    beside_a_pending_idup(session, observer);

    session.phase("MPI_Comm_split_type");
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    Collectives(session, node, "the node").run();
    MPI_Comm_free(&node);
    return session.finish();
}
