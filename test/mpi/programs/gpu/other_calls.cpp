// SPDX-License-Identifier: BSD-3-Clause
#include "other_calls.hpp"

#include "test/mpi/lib/persistent.hpp"

#include <algorithm>
#include <numeric>

namespace hier_test {

namespace {

const void* unless_in_place(const Call& call, const void* send)
{
    return call.in_place ? MPI_IN_PLACE : send;
}

const void* unless_in_place_at_root(const Call& call, const void* send)
{
    return call.in_place && call.is_root() ? MPI_IN_PLACE : send;
}

void* received_unless_in_place(const Call& call, void* receive)
{
    return call.in_place && call.is_root() ? MPI_IN_PLACE : receive;
}

void set_displacements(Call& call)
{
    const auto ranks = static_cast<std::size_t>(call.size);
    const auto own = static_cast<std::size_t>(call.rank);
    int row = 0, column = 0;
    for (auto* const list : {&call.row_at, &call.of_row, &call.column_at, &call.of_column,
                             &call.bytes, &call.other_bytes}) {
        list->clear();
    }
    for (std::size_t i = ranks; i-- > 0;) {  // blocks in another order
        call.row_at.insert(call.row_at.begin(), row);
        call.of_row.insert(call.of_row.begin(), call.matrix[own * ranks + i]);
        call.column_at.push_back(column);
        call.of_column.push_back(call.matrix[(ranks - 1 - i) * ranks + own]);
        row += call.of_row.front() + 1;
        column += call.of_column.back() + 2;
    }
    for (std::size_t i = 0; i < ranks; ++i) {
        call.bytes.push_back(call.row_at[i] * static_cast<int>(call.extent));
        call.other_bytes.push_back(call.column_at[i] * static_cast<int>(call.extent));
    }
    call.types.assign(ranks, call.type);
    call.neighbor_bytes = call.neighbor_at * call.extent;
}

}  // namespace

Call draw_call(std::mt19937& random, MPI_Comm comm, MPI_Datatype type, int least)
{
    Call call;
    call.comm = comm;
    call.size = size_of(comm);
    call.rank = rank_of(comm);
    call.type = type;
    MPI_Aint lower_bound = 0;
    MPI_Type_get_extent(type, &lower_bound, &call.extent);
    const auto ranks = static_cast<std::size_t>(call.size);
    const auto below = [&random](int limit) {
        return static_cast<int>(random() % static_cast<unsigned>(limit));
    };
    call.root = below(call.size);
    const int most = below(4) == 0 ? 3000 : 20;
    call.count = std::max(least, below(most));
    for (std::size_t i = 0; i < ranks * ranks; ++i) {
        call.matrix.push_back(std::max(least, below(12)));
    }
    int at = 0;
    for (std::size_t i = 0; i < ranks; ++i) {
        call.counts.push_back(std::max(least, below(most)));
        call.displacements.push_back(at += below(3));
        at += call.counts.back();
    }
    set_displacements(call);
    return call;
}

Call in_place_of(Call call)
{
    call.in_place = true;
    const auto ranks = static_cast<std::size_t>(call.size);
    for (std::size_t i = 0; i < ranks; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            call.matrix[j * ranks + i] = call.matrix[i * ranks + j];
        }
    }
    set_displacements(call);
    return call;
}

std::size_t room(const Call& call)
{
    const int total = std::accumulate(call.counts.begin(), call.counts.end(), 0);
    const int elements =
        std::max({call.count * call.size, call.displacements.back() + call.counts.back(), total,
                  16 * call.size, call.count + call.neighbor_at}) +
        4;
    return static_cast<std::size_t>(elements) * static_cast<std::size_t>(call.extent) + 256;
}

// FORM(function, more arguments...): a call of the collective's arguments, and those. In a row, c is
// the Call, s and r are the buffers.
#define FORM(...)                                                                                  \
    []([[maybe_unused]] const Call& c, [[maybe_unused]] void* s, [[maybe_unused]] void* r,         \
       [[maybe_unused]] MPI_Request* request) { return __VA_ARGS__; }
#ifdef HIER_TEST_PERSISTENT
#define PERSISTENT(Name, ...)                                                                      \
    FORM(HIER_TEST_PERSISTENT(Name##_init)(__VA_ARGS__, MPI_INFO_NULL, request))
#else
#define PERSISTENT(Name, ...) nullptr
#endif
#define ROW(Name, name, in_place, reduces, neighbors, others, send, receive, ...)                  \
    {                                                                                              \
        "MPI_" #Name, in_place, reduces, neighbors, others, Uses::send, Uses::receive,             \
            FORM(MPI_##Name(__VA_ARGS__)), FORM(MPI_I##name(__VA_ARGS__, request)),                \
            PERSISTENT(Name, __VA_ARGS__), "MPI_I" #name, "MPI_" #Name "_init"                     \
    }
#define REDUCTION(Name, name, send, receive, ...)                                                  \
    ROW(Name, name, true, true, false, true, send, receive, __VA_ARGS__)
#define MOVEMENT(Name, name, in_place, send, receive, ...)                                         \
    ROW(Name, name, in_place, false, false, true, send, receive, __VA_ARGS__)
#define NEIGHBORHOOD(Name, name, ...)                                                              \
    ROW(Name, name, false, false, true, true, all, all, __VA_ARGS__)

const std::vector<Collective>& collectives()
{
    static const std::vector<Collective> all = {
        MOVEMENT(Bcast, bcast, false, none, all, r, c.count, c.type, c.root, c.comm),
        REDUCTION(Allreduce, allreduce, all, all, unless_in_place(c, s), r, c.count, c.type,
                  MPI_SUM, c.comm),
        REDUCTION(Reduce, reduce, all, root, unless_in_place_at_root(c, s), r, c.count, c.type,
                  MPI_SUM, c.root, c.comm),
        REDUCTION(Scan, scan, all, all, unless_in_place(c, s), r, c.count, c.type, MPI_SUM, c.comm),
        REDUCTION(Exscan, exscan, all, all, unless_in_place(c, s), r, c.count, c.type, MPI_SUM,
                  c.comm),
        REDUCTION(Reduce_scatter, reduce_scatter, all, all, unless_in_place(c, s), r,
                  c.counts.data(), c.type, MPI_SUM, c.comm),
        REDUCTION(Reduce_scatter_block, reduce_scatter_block, all, all, unless_in_place(c, s), r,
                  c.count, c.type, MPI_SUM, c.comm),
        ROW(Allgatherv, allgatherv, true, false, false, false, all, all, unless_in_place(c, s),
            c.own_count(), c.type, r, c.counts.data(), c.displacements.data(), c.type, c.comm),
        MOVEMENT(Alltoall, alltoall, true, all, all, unless_in_place(c, s), c.count, c.type, r,
                 c.count, c.type, c.comm),
        MOVEMENT(Alltoallv, alltoallv, true, all, all, unless_in_place(c, s), c.of_row.data(),
                 c.row_at.data(), c.type, r, c.of_column.data(), c.column_at.data(), c.type,
                 c.comm),
        MOVEMENT(Alltoallw, alltoallw, true, all, all, unless_in_place(c, s), c.of_row.data(),
                 c.bytes.data(), c.types.data(), r, c.of_column.data(), c.other_bytes.data(),
                 c.types.data(), c.comm),
        MOVEMENT(Gather, gather, true, all, root, unless_in_place_at_root(c, s), c.count, c.type, r,
                 c.count, c.type, c.root, c.comm),
        MOVEMENT(Gatherv, gatherv, true, all, root, unless_in_place_at_root(c, s), c.own_count(),
                 c.type, r, c.counts.data(), c.displacements.data(), c.type, c.root, c.comm),
        MOVEMENT(Scatter, scatter, true, root, all, s, c.count, c.type,
                 received_unless_in_place(c, r), c.count, c.type, c.root, c.comm),
        MOVEMENT(Scatterv, scatterv, true, root, all, s, c.counts.data(), c.displacements.data(),
                 c.type, received_unless_in_place(c, r), c.own_count(), c.type, c.root, c.comm),
        NEIGHBORHOOD(Neighbor_allgather, neighbor_allgather, s, c.count, c.type, r, c.count, c.type,
                     c.comm),
        NEIGHBORHOOD(Neighbor_allgatherv, neighbor_allgatherv, s, c.count, c.type, r, &c.count,
                     &c.neighbor_at, c.type, c.comm),
        NEIGHBORHOOD(Neighbor_alltoall, neighbor_alltoall, s, c.count, c.type, r, c.count, c.type,
                     c.comm),
        NEIGHBORHOOD(Neighbor_alltoallv, neighbor_alltoallv, s, &c.count, &c.neighbor_at, c.type, r,
                     &c.count, &c.neighbor_at, c.type, c.comm),
        NEIGHBORHOOD(Neighbor_alltoallw, neighbor_alltoallw, s, &c.count, &c.neighbor_bytes,
                     &c.type, r, &c.count, &c.neighbor_bytes, &c.type, c.comm),
    };
    return all;
}

}  // namespace hier_test
