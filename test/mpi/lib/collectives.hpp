// SPDX-License-Identifier: BSD-3-Clause
// Calls all collectives on one intra-communicator and checks each result.
#pragma once

#include "support.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hier_test {

inline constexpr int block = 257;
using Ints = std::vector<int>;

// The value that rank `from` has for rank `to` at position i.
inline int value(int from, int to, int i) { return from * 100000 + to * 1000 + i % 1000; }

inline std::size_t slots(int count) { return static_cast<std::size_t>(count); }

// One block for every rank. f(rank, position) gives the values.
inline Ints blocks(int ranks, const std::function<int(int, int)>& f)
{
    Ints all;
    for (int rank = 0; rank < ranks; ++rank) {
        for (int i = 0; i < block; ++i) {
            all.push_back(f(rank, i));
        }
    }
    return all;
}

inline Ints one_block(const std::function<int(int)>& f)
{
    return blocks(1, [&f](int, int i) { return f(i); });
}

// Counts and displacements: rank + 1 elements for each rank, and a hole of one element behind them.
struct Uneven {
    explicit Uneven(int ranks)
    {
        for (int rank = 0; rank < ranks; ++rank) {
            counts.push_back(rank + 1);
            displacements.push_back(total);
            total += rank + 2;
        }
    }
    Ints buffer(const std::function<int(int, int)>& f) const
    {
        Ints all(slots(total), -1);
        for (std::size_t rank = 0; rank < counts.size(); ++rank) {
            for (int i = 0; i < counts[rank]; ++i) {
                all[slots(displacements[rank] + i)] = f(static_cast<int>(rank), i);
            }
        }
        return all;
    }
    Ints counts;
    Ints displacements;
    int total = 0;
};

class Collectives {
public:
    Collectives(Session& session, MPI_Comm comm, std::string name)
        : session_(session), comm_(comm), name_(std::move(name)), rank_(rank_of(comm)),
          size_(size_of(comm))
    {
    }

    void run()
    {
        rooted();
        reductions();
        all_to_all();
        uneven();
        nonblocking();
    }

private:
    void expect(const char* what, const Ints& got, const Ints& wanted)
    {
        session_.check(got == wanted, "%s on %s: wrong result", what, name_.c_str());
    }
    void enter(const char* what) { session_.phase("%s on %s", what, name_.c_str()); }

    int sum_over_ranks(int last, int i) const
    {
        int sum = 0;
        for (int rank = 0; rank <= last; ++rank) {
            sum += value(rank, 0, i);
        }
        return sum;
    }

    void rooted()
    {
        enter("barrier, bcast, gather, scatter, reduce");
        MPI_Barrier(comm_);
        for (int root = 0; root < size_; ++root) {
            const Ints root_block = one_block([root](int i) { return value(root, 0, i); });
            const Ints mine = one_block([this](int i) { return value(rank_, 0, i); });
            Ints data = rank_ == root ? root_block : Ints(block, -1);
            MPI_Bcast(data.data(), block, MPI_INT, root, comm_);
            expect("MPI_Bcast", data, root_block);

            Ints gathered(slots(size_ * block), -1);
            MPI_Gather(mine.data(), block, MPI_INT, gathered.data(), block, MPI_INT, root, comm_);
            const Ints all = blocks(size_, [](int from, int i) { return value(from, 0, i); });
            expect("MPI_Gather", gathered, rank_ == root ? all : Ints(gathered.size(), -1));

            const Ints for_each =
                blocks(size_, [root](int to, int i) { return value(root, to, i); });
            Ints got(block, -1);
            MPI_Scatter(for_each.data(), block, MPI_INT, got.data(), block, MPI_INT, root, comm_);
            expect("MPI_Scatter", got,
                   one_block([this, root](int i) { return value(root, rank_, i); }));

            Ints sum(block, -1);
            MPI_Reduce(mine.data(), sum.data(), block, MPI_INT, MPI_SUM, root, comm_);
            expect("MPI_Reduce", sum,
                   rank_ == root ? one_block([this](int i) { return sum_over_ranks(size_ - 1, i); })
                                 : Ints(block, -1));
        }
    }

    void reductions()
    {
        enter("allreduce, scan, exscan, reduce_scatter");
        const Ints mine = one_block([this](int i) { return value(rank_, 0, i); });
        const Ints total = one_block([this](int i) { return sum_over_ranks(size_ - 1, i); });
        Ints got(block, -1);
        MPI_Allreduce(mine.data(), got.data(), block, MPI_INT, MPI_SUM, comm_);
        expect("MPI_Allreduce", got, total);
        got = mine;
        MPI_Allreduce(MPI_IN_PLACE, got.data(), block, MPI_INT, MPI_SUM, comm_);
        expect("MPI_Allreduce in place", got, total);
        MPI_Scan(mine.data(), got.data(), block, MPI_INT, MPI_SUM, comm_);
        expect("MPI_Scan", got, one_block([this](int i) { return sum_over_ranks(rank_, i); }));
        if (size_ > 1 || session_.number("exscan-alone", 1) != 0) {
            got.assign(block, -1);
            MPI_Exscan(mine.data(), got.data(), block, MPI_INT, MPI_SUM, comm_);
            if (rank_ > 0) {
                expect("MPI_Exscan", got,
                       one_block([this](int i) { return sum_over_ranks(rank_ - 1, i); }));
            }
        }
        const Ints for_each = blocks(size_, [this](int to, int i) { return value(rank_, to, i); });
        const Ints share = one_block([this](int i) {
            int sum = 0;
            for (int from = 0; from < size_; ++from) {
                sum += value(from, rank_, i);
            }
            return sum;
        });
        got.assign(block, -1);
        MPI_Reduce_scatter_block(for_each.data(), got.data(), block, MPI_INT, MPI_SUM, comm_);
        expect("MPI_Reduce_scatter_block", got, share);
        got.assign(block, -1);
        const Ints counts(slots(size_), block);
        MPI_Reduce_scatter(for_each.data(), got.data(), counts.data(), MPI_INT, MPI_SUM, comm_);
        expect("MPI_Reduce_scatter", got, share);
        Ints local = mine;
        MPI_Reduce_local(total.data(), local.data(), block, MPI_INT, MPI_MAX);
        expect("MPI_Reduce_local", local,
               one_block([&](int i) { return std::max(mine[slots(i)], total[slots(i)]); }));
    }

    void all_to_all()
    {
        enter("alltoall");
        const Ints send = blocks(size_, [this](int to, int i) { return value(rank_, to, i); });
        const Ints wanted =
            blocks(size_, [this](int from, int i) { return value(from, rank_, i); });
        Ints got(send.size(), -1);
        MPI_Alltoall(send.data(), block, MPI_INT, got.data(), block, MPI_INT, comm_);
        expect("MPI_Alltoall", got, wanted);
        got = send;
        MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got.data(), block, MPI_INT, comm_);
        expect("MPI_Alltoall in place", got, wanted);
    }

    void uneven()
    {
        enter("the v-forms");
        const Uneven shape(size_);
        const Ints mine = one_block([this](int i) { return value(rank_, 0, i); });
        const Ints all = shape.buffer([](int from, int i) { return value(from, 0, i); });
        Ints got(slots(shape.total), -1);
        MPI_Allgatherv(mine.data(), rank_ + 1, MPI_INT, got.data(), shape.counts.data(),
                       shape.displacements.data(), MPI_INT, comm_);
        expect("MPI_Allgatherv", got, all);
        const int root = size_ - 1;
        got.assign(slots(shape.total), -1);
        MPI_Gatherv(mine.data(), rank_ + 1, MPI_INT, got.data(), shape.counts.data(),
                    shape.displacements.data(), MPI_INT, root, comm_);
        expect("MPI_Gatherv", got, rank_ == root ? all : Ints(slots(shape.total), -1));
        Ints part(slots(rank_ + 1), -1);
        MPI_Scatterv(all.data(), shape.counts.data(), shape.displacements.data(), MPI_INT,
                     part.data(), rank_ + 1, MPI_INT, root, comm_);
        expect("MPI_Scatterv", part, Ints(mine.begin(), mine.begin() + rank_ + 1));

        // Each rank sends `to` + 1 elements to rank `to`. So rank r receives r + 1 elements from every rank.
        const Ints send = shape.buffer([this](int to, int i) { return value(rank_, to, i); });
        const Ints counts(slots(size_), rank_ + 1);
        Ints places(slots(size_));
        for (int from = 0; from < size_; ++from) {
            places[slots(from)] = from * (rank_ + 1);
        }
        Ints wanted;
        for (int from = 0; from < size_; ++from) {
            for (int i = 0; i <= rank_; ++i) {
                wanted.push_back(value(from, rank_, i));
            }
        }
        got.assign(wanted.size(), -1);
        MPI_Alltoallv(send.data(), shape.counts.data(), shape.displacements.data(), MPI_INT,
                      got.data(), counts.data(), places.data(), MPI_INT, comm_);
        expect("MPI_Alltoallv", got, wanted);
        const std::vector<MPI_Datatype> types(slots(size_), MPI_INT);
        const auto bytes = [](Ints elements) {
            for (int& element : elements) {
                element *= static_cast<int>(sizeof(int));
            }
            return elements;
        };
        got.assign(wanted.size(), -1);
        MPI_Alltoallw(send.data(), shape.counts.data(), bytes(shape.displacements).data(),
                      types.data(), got.data(), counts.data(), bytes(places).data(), types.data(),
                      comm_);
        expect("MPI_Alltoallw", got, wanted);
    }

    // Several operations are in flight at once. A blocking allgather, which hier serves, runs between start and end.
    void nonblocking()
    {
        enter("the nonblocking ones");
        const Ints mine = one_block([this](int i) { return value(rank_, 0, i); });
        const Ints all = blocks(size_, [](int from, int i) { return value(from, 0, i); });
        const Ints for_each = blocks(size_, [this](int to, int i) { return value(rank_, to, i); });
        Ints gathered(all.size(), -1);
        Ints sum(block, -1);
        Ints scanned(block, -1);
        Ints exchanged(all.size(), -1);
        Ints told = rank_ == 0 ? mine : Ints(block, -1);
        Ints meanwhile(all.size(), -1);
        MPI_Request requests[6];
        MPI_Iallgather(mine.data(), block, MPI_INT, gathered.data(), block, MPI_INT, comm_,
                       &requests[0]);
        MPI_Iallreduce(mine.data(), sum.data(), block, MPI_INT, MPI_SUM, comm_, &requests[1]);
        MPI_Iscan(mine.data(), scanned.data(), block, MPI_INT, MPI_SUM, comm_, &requests[2]);
        MPI_Ialltoall(for_each.data(), block, MPI_INT, exchanged.data(), block, MPI_INT, comm_,
                      &requests[3]);
        MPI_Ibcast(told.data(), block, MPI_INT, 0, comm_, &requests[4]);
        MPI_Ibarrier(comm_, &requests[5]);
        MPI_Allgather(mine.data(), block, MPI_INT, meanwhile.data(), block, MPI_INT, comm_);
        // The analyzer does not know all nonblocking collectives.
        // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
        MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
        expect("MPI_Allgather among nonblocking ones", meanwhile, all);
        expect("MPI_Iallgather", gathered, all);
        expect("MPI_Iallreduce", sum,
               one_block([this](int i) { return sum_over_ranks(size_ - 1, i); }));
        expect("MPI_Iscan", scanned, one_block([this](int i) { return sum_over_ranks(rank_, i); }));
        expect("MPI_Ialltoall", exchanged,
               blocks(size_, [this](int from, int i) { return value(from, rank_, i); }));
        expect("MPI_Ibcast", told, one_block([](int i) { return value(0, 0, i); }));
    }

    Session& session_;
    MPI_Comm comm_;
    std::string name_;
    int rank_;
    int size_;
};

}  // namespace hier_test
