// SPDX-License-Identifier: BSD-3-Clause
// MPI_Allgather in the same memory again and again, with the same arguments or with others. What hier remembers of a call
// must not serve another one.
#include "test/mpi/lib/support.hpp"

#include <string>

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
    }
    MPI_Comm_free(&reversed);
    observer.close();
    return session.finish();
}
