// SPDX-License-Identifier: BSD-3-Clause
// The other blocking collectives on device memory. Each call is made twice: with buffers in some kinds of memory, and
// with copies of these in plain memory, which Open MPI's own modules serve. Both must leave the same bytes, also in
// the gaps of datatypes and around the elements.
#include "test/mpi/lib/gpu_memory.hpp"

#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using namespace hier_test;

namespace {

// The arguments of one call. A rank's buffers begin `front` bytes before their elements.
struct Call {
    int size = 0, rank = 0, root = 0;
    int count = 0;  // elements of a block
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Aint extent = 0;
    std::vector<int> counts, displacements;  // of each rank's block, in elements
    std::vector<int> matrix;                 // counts of what each rank sends to each one
    std::vector<int> bytes, other_bytes;     // displacements for alltoallw
    std::vector<int> of_row, of_column, row_at, column_at;
    std::vector<MPI_Datatype> types;
    bool in_place = false;

    bool is_root() const { return rank == root; }
    int total() const { return std::accumulate(counts.begin(), counts.end(), 0); }
};

using Buffers = std::function<int(const Call&, void* send, void* receive)>;

struct Collective {
    const char* name;
    bool can_be_in_place;
    bool is_reduction;
    Buffers run;
};

const void* unless_in_place(const Call& call, const void* send)
{
    return call.in_place ? MPI_IN_PLACE : send;
}

const std::vector<Collective>& collectives()
{
    static const std::vector<Collective> all = {
        {"MPI_Bcast", false, false,
         [](const Call& c, void*, void* r) {
             return MPI_Bcast(r, c.count, c.type, c.root, MPI_COMM_WORLD);
         }},
        {"MPI_Allreduce", true, true,
         [](const Call& c, void* s, void* r) {
             return MPI_Allreduce(unless_in_place(c, s), r, c.count, c.type, MPI_SUM,
                                  MPI_COMM_WORLD);
         }},
        {"MPI_Reduce", true, true,
         [](const Call& c, void* s, void* r) {
             return MPI_Reduce(c.in_place && c.is_root() ? MPI_IN_PLACE : s, r, c.count, c.type,
                               MPI_SUM, c.root, MPI_COMM_WORLD);
         }},
        {"MPI_Scan", true, true,
         [](const Call& c, void* s, void* r) {
             return MPI_Scan(unless_in_place(c, s), r, c.count, c.type, MPI_SUM, MPI_COMM_WORLD);
         }},
        {"MPI_Exscan", true, true,
         [](const Call& c, void* s, void* r) {
             return MPI_Exscan(unless_in_place(c, s), r, c.count, c.type, MPI_SUM, MPI_COMM_WORLD);
         }},
        {"MPI_Reduce_scatter", true, true,
         [](const Call& c, void* s, void* r) {
             return MPI_Reduce_scatter(unless_in_place(c, s), r, c.counts.data(), c.type, MPI_SUM,
                                       MPI_COMM_WORLD);
         }},
        {"MPI_Reduce_scatter_block", true, true,
         [](const Call& c, void* s, void* r) {
             return MPI_Reduce_scatter_block(unless_in_place(c, s), r, c.count, c.type, MPI_SUM,
                                             MPI_COMM_WORLD);
         }},
        {"MPI_Allgatherv", true, false,
         [](const Call& c, void* s, void* r) {
             const auto own = static_cast<std::size_t>(c.rank);
             return MPI_Allgatherv(unless_in_place(c, s), c.counts[own], c.type, r, c.counts.data(),
                                   c.displacements.data(), c.type, MPI_COMM_WORLD);
         }},
        {"MPI_Alltoall", true, false,
         [](const Call& c, void* s, void* r) {
             return MPI_Alltoall(unless_in_place(c, s), c.count, c.type, r, c.count, c.type,
                                 MPI_COMM_WORLD);
         }},
        {"MPI_Alltoallv", false, false,
         [](const Call& c, void* s, void* r) {
             return MPI_Alltoallv(s, c.of_row.data(), c.row_at.data(), c.type, r,
                                  c.of_column.data(), c.column_at.data(), c.type, MPI_COMM_WORLD);
         }},
        {"MPI_Alltoallw", false, false,
         [](const Call& c, void* s, void* r) {
             return MPI_Alltoallw(s, c.of_row.data(), c.bytes.data(), c.types.data(), r,
                                  c.of_column.data(), c.other_bytes.data(), c.types.data(),
                                  MPI_COMM_WORLD);
         }},
        {"MPI_Gather", true, false,
         [](const Call& c, void* s, void* r) {
             return MPI_Gather(c.in_place && c.is_root() ? MPI_IN_PLACE : s, c.count, c.type, r,
                               c.count, c.type, c.root, MPI_COMM_WORLD);
         }},
        {"MPI_Gatherv", true, false,
         [](const Call& c, void* s, void* r) {
             const auto own = static_cast<std::size_t>(c.rank);
             return MPI_Gatherv(c.in_place && c.is_root() ? MPI_IN_PLACE : s, c.counts[own], c.type,
                                r, c.counts.data(), c.displacements.data(), c.type, c.root,
                                MPI_COMM_WORLD);
         }},
        {"MPI_Scatter", true, false,
         [](const Call& c, void* s, void* r) {
             return MPI_Scatter(s, c.count, c.type, c.in_place && c.is_root() ? MPI_IN_PLACE : r,
                                c.count, c.type, c.root, MPI_COMM_WORLD);
         }},
        {"MPI_Scatterv", true, false,
         [](const Call& c, void* s, void* r) {
             const auto own = static_cast<std::size_t>(c.rank);
             return MPI_Scatterv(s, c.counts.data(), c.displacements.data(), c.type,
                                 c.in_place && c.is_root() ? MPI_IN_PLACE : r, c.counts[own],
                                 c.type, c.root, MPI_COMM_WORLD);
         }},
    };
    return all;
}

// Equal on all ranks, but for `rank`.
Call draw(std::mt19937& random, int size, int rank, MPI_Datatype type)
{
    Call call;
    call.size = size;
    call.rank = rank;
    call.type = type;
    MPI_Aint lower_bound = 0;
    MPI_Type_get_extent(type, &lower_bound, &call.extent);
    const auto ranks = static_cast<std::size_t>(size);
    call.root = static_cast<int>(random() % ranks);
    const int most = random() % 4 == 0 ? 3000 : 20;
    call.count = static_cast<int>(random() % static_cast<unsigned>(most));
    call.in_place = random() % 3 == 0;
    for (std::size_t i = 0; i < ranks * ranks; ++i) {
        call.matrix.push_back(static_cast<int>(random() % 12));
    }
    int at = 0;
    for (std::size_t i = 0; i < ranks; ++i) {
        call.counts.push_back(static_cast<int>(random() % static_cast<unsigned>(most)));
        call.displacements.push_back(at += static_cast<int>(random() % 3));
        at += call.counts.back();
    }
    // Blocks in any order.
    const auto own = static_cast<std::size_t>(rank);
    int row = 0, column = 0;
    for (std::size_t i = ranks; i-- > 0;) {
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
        call.types.push_back(type);
    }
    return call;
}

// Enough for the elements of every collective.
std::size_t room(const Call& call)
{
    const int elements =
        std::max({call.count * call.size, call.displacements.back() + call.counts.back(),
                  call.total(), 16 * call.size}) +
        4;
    return static_cast<std::size_t>(elements) * static_cast<std::size_t>(call.extent) + 256;
}

// Small numbers, so that sums of floats are exact and equal in any order.
Bytes content(std::mt19937& random, std::size_t bytes, bool are_floats)
{
    Bytes all(bytes);
    for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
        const auto value = random() % 1000;
        const auto number = static_cast<float>(value);
        const auto whole = static_cast<std::uint32_t>(value);
        std::memcpy(&all[i], are_floats ? static_cast<const void*>(&number) : &whole, 4);
    }
    return all;
}

constexpr std::size_t front = 64;

class Others {
public:
    explicit Others(Session& session) : session_(session) {}

    void run(const Collective& collective, const Call& call, Kind send_kind, Kind receive_kind,
             std::mt19937& own)
    {
        const bool are_floats = collective.is_reduction;
        const Bytes sent = content(own, room(call), are_floats);
        const Bytes before = content(own, room(call), are_floats);
        Bytes plain_send = sent, plain = before;
        session_.ok(collective.run(call, &plain_send[front], &plain[front]), collective.name);
        const Memory send(send_kind, sent), receive(receive_kind, before);
        session_.phase("%s, %s and %s memory, %d elements%s", collective.name, name_of(send_kind),
                       name_of(receive_kind), call.count, call.in_place ? ", in place" : "");
        session_.ok(collective.run(call, at(send), at(receive)), collective.name);
        compare(collective, receive.read(0, plain.size()), plain, "received");
        compare(collective, send.read(0, sent.size()), plain_send, "sent");
    }

private:
    static void* at(const Memory& memory)
    {
        return static_cast<unsigned char*>(memory.data()) + front;
    }

    void compare(const Collective& collective, const Bytes& found, const Bytes& expected,
                 const char* what)
    {
        const std::string wrong = difference(found, expected);
        session_.check(wrong.empty(), "%s: %s bytes: wrong %s", collective.name, what,
                       wrong.c_str());
    }

    Session& session_;
};

// Calls that are not served on device memory: an error, and no crash. In memory of the host they go on.
void refusals(Session& session)
{
    constexpr int count = 100;
    const auto ranks = static_cast<std::size_t>(session.size());
    const int dimensions[] = {session.size()}, periods[] = {1};
    MPI_Comm ring = MPI_COMM_NULL;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, periods, 0, &ring);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    for (const Kind kind : {Kind::device, Kind::pageable, Kind::pinned}) {
        const Memory send(kind, 4 * count * ranks), receive(kind, 8 * count * ranks);
        const auto judge = [&](const char* name, auto call) {
            session.phase("%s, %s memory", name, name_of(kind));
            MPI_Request request = MPI_REQUEST_NULL;
            const int code = call(&request);
            int found = MPI_SUCCESS;
            MPI_Error_class(code, &found);
            const int wanted = kind == Kind::device ? MPI_ERR_UNSUPPORTED_OPERATION : MPI_SUCCESS;
            session.check(found == wanted, "%s: error class %d, not %d", name, found, wanted);
            if (code == MPI_SUCCESS) {
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            }
        };
        void *s = send.data(), *r = receive.data();
        judge("MPI_Iscan", [&](MPI_Request* request) {
            return MPI_Iscan(s, r, count, MPI_INT, MPI_MAX, ring, request);
        });
        judge("MPI_Iallreduce", [&](MPI_Request* request) {
            return MPI_Iallreduce(s, r, count, MPI_INT, MPI_MAX, ring, request);
        });
        if (session.size() > 1) {  // else Open MPI itself ends the call
            judge("MPI_Ibcast", [&](MPI_Request* request) {
                return MPI_Ibcast(r, count, MPI_INT, 0, ring, request);
            });
        }
        judge("MPI_Ialltoall", [&](MPI_Request* request) {
            return MPI_Ialltoall(s, count, MPI_INT, r, count, MPI_INT, ring, request);
        });
        judge("MPI_Ireduce_scatter_block", [&](MPI_Request* request) {
            return MPI_Ireduce_scatter_block(s, r, count, MPI_INT, MPI_MAX, ring, request);
        });
        judge("MPI_Neighbor_allgather", [&](MPI_Request*) {
            return MPI_Neighbor_allgather(s, count, MPI_INT, r, count, MPI_INT, ring);
        });
        judge("MPI_Ineighbor_allgather", [&](MPI_Request* request) {
            return MPI_Ineighbor_allgather(s, count, MPI_INT, r, count, MPI_INT, ring, request);
        });
    }
    MPI_Comm_free(&ring);
}

// Memory that the CPU does not reach, more often than not.
Kind any_kind(std::mt19937& random)
{
    return random() % 2 == 0 ? Kind::device : static_cast<Kind>(random() % kinds);
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "gpu_others", {"expect", "min-bytes", "rounds", "seed"});
    require_hip(hipSetDevice(session.rank() % devices()), "hipSetDevice");
    MPI_Datatype gaps = MPI_DATATYPE_NULL, two = MPI_DATATYPE_NULL;
    MPI_Type_vector(3, 2, 4, MPI_INT, &gaps);
    MPI_Type_create_resized(MPI_INT, -4, 12, &two);
    MPI_Type_commit(&gaps);
    MPI_Type_commit(&two);
    const auto rounds = static_cast<int>(session.number("rounds", 6));
    const auto seed = static_cast<unsigned>(session.number("seed", 1));
    std::mt19937 random(seed), own(seed + 1000 + static_cast<unsigned>(session.rank()));
    Others others(session);
    for (int round = 0; round < rounds; ++round) {
        for (const Collective& collective : collectives()) {
            const MPI_Datatype types[] = {MPI_INT, gaps, two};
            const MPI_Datatype type = collective.is_reduction ? MPI_FLOAT : types[random() % 3];
            Call call = draw(random, session.size(), session.rank(), type);
            call.in_place = call.in_place && collective.can_be_in_place;
            others.run(collective, call, any_kind(own), any_kind(own), own);
        }
    }
    MPI_Type_free(&gaps);
    MPI_Type_free(&two);
    refusals(session);
    return session.finish();
}
