// SPDX-License-Identifier: BSD-3-Clause
// Allgathers in the same memory again and again, with the same arguments or with others. What hier
// remembers of a call must not serve another one.
#include "test/mpi/lib/persistent.hpp"
#include "test/mpi/lib/support.hpp"

#include <unistd.h>

#include <cstring>
#include <iterator>
#include <string>
#include <vector>

using namespace hier_test;

namespace {

// A datatype of 1, 4 or 8 bytes. A derived one gets its handle anew, perhaps that of one before with other bytes.
class Element {
public:
    explicit Element(std::uint64_t kind)
    {
        if (kind < 2) {
            type_ = kind == 0 ? MPI_BYTE : MPI_INT;
            return;
        }
        MPI_Type_contiguous(kind == 2 ? 4 : 8, MPI_BYTE, &type_);
        MPI_Type_commit(&type_);
        is_derived_ = true;
    }
    ~Element()
    {
        if (is_derived_) MPI_Type_free(&type_);
    }
    Element(const Element&) = delete;
    Element& operator=(const Element&) = delete;
    MPI_Datatype type() const { return type_; }
    std::size_t bytes() const
    {
        int size = 0;
        MPI_Type_size(type_, &size);
        return static_cast<std::size_t>(size);
    }

private:
    MPI_Datatype type_ = MPI_DATATYPE_NULL;
    bool is_derived_ = false;
};

// Each call is made twice. The second one of a derived datatype has a larger datatype.
void run(Session& session, Observer& observer, MPI_Comm comm, int calls)
{
    constexpr std::size_t most_elements = 1000, most_bytes = 8;
    const int ranks = size_of(comm), rank = rank_of(comm);
    GuardedBuffer send(most_elements * most_bytes);
    GuardedBuffer receive(send.bytes() * static_cast<std::size_t>(ranks));
    for (int call = 0; call < calls; ++call) {
        const auto at = static_cast<std::uint64_t>(call / 2);
        const std::size_t elements = pick(1, at, 2) == 0 ? most_elements : 100;
        const bool in_place = pick(2, at, 3) == 0;
        const std::uint64_t kind = pick(3, at, 3);
        const Element element(kind < 2 ? kind : kind + static_cast<std::uint64_t>(call % 2));
        const std::size_t bytes = elements * element.bytes();
        const int count = static_cast<int>(elements);
        session.phase("call %d of %d, %zu bytes a rank, in place %d", call, calls, bytes, in_place);
        unsigned char* const own = receive.data() + static_cast<std::size_t>(rank) * bytes;
        Pattern(rank, call).fill(in_place ? own : send.data(), bytes);
        session.ok(observer.allgather(in_place ? MPI_IN_PLACE : send.data(), count, element.type(),
                                      receive.data(), count, element.type(), comm),
                   "MPI_Allgather in the same memory");
        const std::size_t total = bytes * static_cast<std::size_t>(ranks);
        check_blocks(session, receive.data(), bytes, ranks, call, "same memory");
        session.check(all_poison(receive.data() + total, receive.bytes() - total) &&
                          receive.guards_intact(),
                      "call %d: written beside the result", call);
        send.clear();
        receive.clear();
    }
}

// Of `sent` elements of `type` and of `ints` MPI_INT from each rank. Returns the error class.
int gather_ints(bool is_blocking, const void* send, int sent, MPI_Datatype type, void* receive,
                int ints, MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    if (is_blocking) {
        code = MPI_Allgather(send, sent, type, receive, ints, MPI_INT, comm);
    } else {
        MPI_Request request = MPI_REQUEST_NULL;
        code = MPI_Iallgather(send, sent, type, receive, ints, MPI_INT, comm, &request);
        if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    return error_class;
}

// The same call, but for what rank 0 sends: as many bytes as it should, twice as many, or half of them. Of more or
// fewer bytes rank 0 alone hears, as an error. All ranks get what fits, and zeros for what is missing.
void run_other_sends(Session& session, MPI_Comm comm, bool is_blocking)
{
    constexpr int ints = 4, most_ints = 2 * ints;
    constexpr std::size_t bytes = ints * sizeof(int);
    struct Send {
        MPI_Datatype type;
        int count, error_class;
        std::size_t used;  // bytes
    };
    const Send sends[] = {{MPI_INT, ints, MPI_SUCCESS, bytes},
                          {MPI_INT, most_ints, MPI_ERR_TRUNCATE, bytes},
                          {MPI_INT, ints, MPI_SUCCESS, bytes},
                          {MPI_INT, ints / 2, MPI_ERR_COUNT, bytes / 2},
                          {MPI_SHORT, ints, MPI_ERR_COUNT, bytes / 2},
                          {MPI_INT, ints, MPI_SUCCESS, bytes},
                          {MPI_BYTE, static_cast<int>(bytes), MPI_SUCCESS, bytes}};
    const int ranks = size_of(comm), rank = rank_of(comm);
    GuardedBuffer send(most_ints * sizeof(int));
    GuardedBuffer receive(bytes * static_cast<std::size_t>(ranks));
    // Each three times: the first one prepares, and the others repeat.
    for (int call = 0; call < 2 * static_cast<int>(std::size(sends)) * 3; ++call) {
        const Send& of_root = sends[static_cast<std::size_t>(call / 3) % std::size(sends)];
        const Send& own = rank == 0 ? of_root : sends[0];
        session.phase("call %d, rank 0 sends %d elements", call, of_root.count);
        receive.clear();
        Pattern(rank, call).fill(send.data(), send.bytes());
        const int error_class =
            gather_ints(is_blocking, send.data(), own.count, own.type, receive.data(), ints, comm);
        session.check(error_class == own.error_class,
                      "call %d, %d elements sent: error class %d, not %d", call, own.count,
                      error_class, own.error_class);
        GuardedBuffer expected(bytes);
        for (int from = 0; from < ranks; ++from) {
            const std::size_t used = from == 0 ? of_root.used : bytes;
            Pattern(from, call).fill(expected.data(), bytes);
            std::memset(expected.data() + used, 0, bytes - used);
            session.check(std::memcmp(receive.data() + bytes * static_cast<std::size_t>(from),
                                      expected.data(), bytes) == 0,
                          "call %d, %d elements sent by rank 0: wrong bytes of rank %d", call,
                          of_root.count, from);
        }
    }
}

// How many bytes come from each rank, and where they go. The arrays stay where they are, with other numbers.
class Blocks {
public:
    static constexpr int variants = 6;
    std::vector<int> counts, displacements;

    Blocks(int ranks, int unit)
        : counts(static_cast<std::size_t>(ranks)), displacements(counts.size()), unit_(unit)
    {
    }
    // The first two have as many bytes in all, and so have the last four.
    void set(int variant)
    {
        const int ranks = static_cast<int>(counts.size());
        int next = variant == 4 ? unit_ : 0;
        for (int i = 0; i < ranks; ++i) {
            const int rank = variant == 5 ? ranks - 1 - i : i;
            const auto at = static_cast<std::size_t>(rank);
            counts[at] = variant == 0   ? unit_ * rank
                         : variant == 1 ? unit_ * (ranks - 1 - rank)
                                        : unit_;
            displacements[at] = next;
            next += counts[at] + (variant == 3 ? 1 : 0);
        }
    }
    std::size_t most_bytes() const
    {
        return (counts.size() + 1) * counts.size() * static_cast<std::size_t>(unit_);
    }
    void fill(unsigned char* receive, int rank, int pattern) const
    {
        const auto at = static_cast<std::size_t>(rank);
        Pattern(rank, pattern)
            .fill(receive + displacements[at], static_cast<std::size_t>(counts[at]));
    }

private:
    int unit_;
};

int gather_blocks(bool is_blocking, const void* send, const Blocks& blocks, int rank, void* receive,
                  MPI_Comm comm)
{
    const int count = blocks.counts[static_cast<std::size_t>(rank)];
    const int* const counts = blocks.counts.data();
    const int* const places = blocks.displacements.data();
    if (is_blocking)
        return MPI_Allgatherv(send, count, MPI_BYTE, receive, counts, places, MPI_BYTE, comm);
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        MPI_Iallgatherv(send, count, MPI_BYTE, receive, counts, places, MPI_BYTE, comm, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

// Each call is made three times, with the same arrays at the same addresses. Then their numbers change.
void run_blocks(Session& session, MPI_Comm comm, bool is_blocking, int unit)
{
    const int ranks = size_of(comm), rank = rank_of(comm);
    Blocks blocks(ranks, unit);
    GuardedBuffer send(blocks.most_bytes()), receive(blocks.most_bytes());
    GuardedBuffer expected(blocks.most_bytes());
    for (int call = 0; call < 4 * Blocks::variants * 3; ++call) {
        const int variant = call / 3 % Blocks::variants;
        const bool in_place = call / (3 * Blocks::variants) % 2 == 1;
        session.phase("blocks of some %d bytes, call %d, variant %d", unit, call, variant);
        blocks.set(variant);
        receive.clear();
        expected.clear();
        for (int from = 0; from < ranks; ++from) blocks.fill(expected.data(), from, call);
        if (in_place) blocks.fill(receive.data(), rank, call);
        const auto own = static_cast<std::size_t>(rank);
        std::memcpy(send.data(), expected.data() + blocks.displacements[own],
                    static_cast<std::size_t>(blocks.counts[own]));
        session.ok(gather_blocks(is_blocking, in_place ? MPI_IN_PLACE : send.data(), blocks, rank,
                                 receive.data(), comm),
                   "an allgather of different blocks");
        session.check(std::memcmp(receive.data(), expected.data(), receive.bytes()) == 0 &&
                          receive.guards_intact(),
                      "call %d, variant %d: wrong bytes", call, variant);
    }
}

// A blocking call behind nonblocking ones, all in the same memory as before.
void run_behind_started(Session& session, MPI_Comm comm, int calls)
{
    constexpr std::size_t bytes = 64, started_bytes = 20000;
    const int ranks = size_of(comm), rank = rank_of(comm);
    GuardedBuffer send(bytes), receive(bytes * static_cast<std::size_t>(ranks));
    GuardedBuffer started_send(started_bytes);
    GuardedBuffer started(started_bytes * static_cast<std::size_t>(ranks));
    for (int call = 0; call < calls; ++call) {
        session.phase("blocking call %d behind a nonblocking one", call);
        receive.clear();
        started.clear();
        Pattern(rank, call).fill(send.data(), bytes);
        Pattern(rank, calls + call).fill(started_send.data(), started_bytes);
        MPI_Request request = MPI_REQUEST_NULL;
        if (call % 3 != 0)
            session.ok(MPI_Iallgather(started_send.data(), started_bytes, MPI_BYTE, started.data(),
                                      started_bytes, MPI_BYTE, comm, &request),
                       "MPI_Iallgather in front");
        session.ok(
            MPI_Allgather(send.data(), bytes, MPI_BYTE, receive.data(), bytes, MPI_BYTE, comm),
            "MPI_Allgather behind it");
        check_blocks(session, receive.data(), bytes, ranks, call, "behind a nonblocking call");
        session.ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        if (call % 3 != 0)
            check_blocks(session, started.data(), started_bytes, ranks, calls + call, "in front");
    }
}

// The same nonblocking call beside one of Open MPI's own. Ranks come at different times, so that the call is over in the
// start of some and not of others. The messages of Open MPI's nonblocking collectives are told apart by how many there
// were on the communicator.
void run_among_others(Session& session, MPI_Comm comm, int calls)
{
    constexpr std::size_t bytes = 64;
    const int ranks = size_of(comm), rank = rank_of(comm);
    GuardedBuffer send(bytes), receive(bytes * static_cast<std::size_t>(ranks));
    for (int call = 0; call < calls; ++call) {
        session.phase("nonblocking call %d beside MPI_Iallreduce", call);
        receive.clear();
        Pattern(rank, call).fill(send.data(), bytes);
        if (call % ranks == rank) usleep(100);
        MPI_Request requests[] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        const int one = call + rank;
        int sum = 0;
        session.ok(MPI_Iallgather(send.data(), bytes, MPI_BYTE, receive.data(), bytes, MPI_BYTE,
                                  comm, &requests[0]),
                   "MPI_Iallgather");
        session.check(requests[0] != MPI_REQUEST_NULL, "call %d: no request", call);
        session.ok(MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[1]),
                   "MPI_Iallreduce");
        int left = 2;
        for (int index = 0; left > 0; --left) {
            session.ok(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE), "MPI_Waitany");
            session.check(index == 0 || index == 1, "call %d: index %d", call, index);
        }
        check_blocks(session, receive.data(), bytes, ranks, call, "beside MPI_Iallreduce");
        session.check(sum == ranks * call + ranks * (ranks - 1) / 2, "call %d: the sum is %d", call,
                      sum);
    }
}

// A nonblocking call and its memory.
struct Started {
    explicit Started(int ranks)
        : send(most_bytes), receive(most_bytes * static_cast<std::size_t>(ranks))
    {
    }

    void start(Session& session, std::size_t its_bytes, int its_pattern, MPI_Comm comm)
    {
        bytes = its_bytes;
        pattern = its_pattern;
        receive.clear();
        Pattern(rank_of(comm), pattern).fill(send.data(), bytes);
        session.ok(MPI_Iallgather(send.data(), static_cast<int>(bytes), MPI_BYTE, receive.data(),
                                  static_cast<int>(bytes), MPI_BYTE, comm, &request),
                   "MPI_Iallgather in the same memory");
    }
    void end(Session& session, int ranks)
    {
        session.ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
        const std::size_t total = bytes * static_cast<std::size_t>(ranks);
        check_blocks(session, receive.data(), bytes, ranks, pattern, "same memory");
        session.check(all_poison(receive.data() + total, receive.bytes() - total) &&
                          receive.guards_intact(),
                      "call %d: written beside the result", pattern);
    }

    static constexpr std::size_t most_bytes = 20000;
    GuardedBuffer send, receive;
    MPI_Request request = MPI_REQUEST_NULL;
    std::size_t bytes = 0;
    int pattern = 0;
};

void tell_others(MPI_Comm comm)
{
    for (int other = 1; other < size_of(comm); ++other)
        MPI_Send(nullptr, 0, MPI_BYTE, other, 1, comm);
}

// Each call is made three times, and the next three ones are in other memory. At the third time rank 0
// starts another call behind it, and then waits for the first one. The others start theirs when they have
// heard that the first one is over: it may not depend on the second one.
void run_started(Session& session, Observer& observer, MPI_Comm comm, int calls)
{
    const int ranks = size_of(comm), rank = rank_of(comm);
    Started memory[] = {Started(ranks), Started(ranks)};
    const Counters::Values before = observer.read(Counted::iallgather);
    unsigned long long made = 0;
    for (int call = 0; call < calls; ++call) {
        const auto at = static_cast<std::uint64_t>(call / 3);
        const std::size_t bytes = pick(4, at, 2) == 0 ? 8 : Started::most_bytes;
        Started &first = memory[at % 2], &second = memory[1 - at % 2];
        const bool has_second = call % 3 == 2;
        session.phase("started call %d of %d, %zu bytes a rank", call, calls, bytes);
        first.start(session, bytes, 2 * call, comm);
        if (has_second && rank == 0) second.start(session, 100, 2 * call + 1, comm);
        first.end(session, ranks);
        made += has_second ? 2 : 1;
        if (!has_second) continue;
        if (rank == 0) {
            tell_others(comm);
        } else {
            MPI_Recv(nullptr, 0, MPI_BYTE, 0, 1, comm, MPI_STATUS_IGNORE);
            second.start(session, 100, 2 * call + 1, comm);
        }
        second.end(session, ranks);
    }
    const unsigned long long served = observer.read(Counted::iallgather).served - before.served;
    session.check(observer.expect() != Expect::hier || served == made,
                  "of %llu nonblocking calls hier served %llu", made, served);
}

// MPI_DOUBLE_INT. Its 12 bytes have a gap behind them: one element is all that lies side by side.
struct Pair {
    double first;
    int second;
    unsigned char gap[4];
};

enum class Form { blocking, nonblocking, persistent };

// One such element of each rank.
class PairCall {
public:
    PairCall(Session& session, MPI_Comm comm, Form form)
        : session_(session), comm_(comm), form_(form),
          receive_(sizeof(Pair) * static_cast<std::size_t>(size_of(comm)))
    {
        if (form != Form::persistent) return;
        session.ok(allgather_init(&send_, 1, MPI_DOUBLE_INT, receive_.data(), 1, MPI_DOUBLE_INT,
                                  comm, &request_),
                   "MPI_Allgather_init of pairs");
    }
    ~PairCall()
    {
        if (request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);
    }
    PairCall(const PairCall&) = delete;
    PairCall& operator=(const PairCall&) = delete;

    void run(int call)
    {
        receive_.clear();
        send_ = {call + 0.5, rank_of(comm_), {}};
        session_.ok(start(), "an allgather of pairs");
        if (form_ != Form::blocking)
            session_.ok(MPI_Wait(&request_, MPI_STATUS_IGNORE), "MPI_Wait");
        for (int rank = 0; rank < size_of(comm_); ++rank) {
            Pair got{};
            std::memcpy(&got, receive_.data() + sizeof got * static_cast<std::size_t>(rank),
                        sizeof got);
            session_.check(got.first == call + 0.5 && got.second == rank &&
                               all_poison(got.gap, sizeof got.gap),
                           "call %d of pairs: a wrong element of rank %d", call, rank);
        }
        session_.check(receive_.guards_intact(), "call %d of pairs: written beside the result",
                       call);
    }

private:
    int start()
    {
        if (form_ == Form::persistent) return MPI_Start(&request_);
        if (form_ == Form::nonblocking)
            return MPI_Iallgather(&send_, 1, MPI_DOUBLE_INT, receive_.data(), 1, MPI_DOUBLE_INT,
                                  comm_, &request_);
        return MPI_Allgather(&send_, 1, MPI_DOUBLE_INT, receive_.data(), 1, MPI_DOUBLE_INT, comm_);
    }

    Session& session_;
    MPI_Comm comm_;
    Form form_;
    Pair send_{};
    GuardedBuffer receive_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

void run_pairs(Session& session, MPI_Comm comm)
{
    for (const Form form : {Form::blocking, Form::nonblocking, Form::persistent}) {
        if (form == Form::persistent && !has_persistent) continue;
        session.phase("pairs, form %d", static_cast<int>(form));
        PairCall calls(session, comm, form);
        for (int call = 0; call < 20; ++call) calls.run(call);
    }
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "again", {"expect", "calls"});
    Observer observer(session);
    const auto calls = static_cast<int>(session.number("calls", 200));
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -session.rank(), &reversed);
    for (const MPI_Comm comm : {MPI_COMM_WORLD, reversed}) {
        run(session, observer, comm, calls);
        run_started(session, observer, comm, calls);
        run_pairs(session, comm);
        run_behind_started(session, comm, calls);
        run_among_others(session, comm, calls);
        for (const int unit : {3, 30000})
            for (const bool is_blocking : {true, false})
                run_blocks(session, comm, is_blocking, unit);
    }
    // MPI_Wait has no communicator, so its error goes to that of the world.
    for (const MPI_Comm comm : {MPI_COMM_WORLD, reversed})
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (const MPI_Comm comm : {MPI_COMM_WORLD, reversed})
        for (const bool is_blocking : {true, false}) run_other_sends(session, comm, is_blocking);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&reversed);
    observer.close();
    return session.finish();
}
