// SPDX-License-Identifier: BSD-3-Clause
// Counts and displacements that an int cannot hold, in all calls that MPI 4 has for them. The other programs make the
// same calls with small counts.
//
//   --blocks N   also blocks of more than 2^N bytes, N from 20 to 40. Only a small part of them is memory. [0: no]
#include "large_blocks.hpp"

using namespace hier_test;

namespace {

class LargeCounts {
public:
    LargeCounts(Session& session, Observer& observer) : session_(session), observer_(observer) {}

    void run(const Test& test, std::initializer_list<Manner> manners)
    {
        for (const Manner manner : manners) {
            const Counted which = counted(test.collective, manner);
            session_.phase("%s, %s", counted_name(which), test.name);
            const Counters::Values before = observer_.read(which);
            const unsigned long long calls = run(test, manner);
            if (session_.size() > 1) compare(test, which, before, calls);
        }
    }
    void run(const Test& test)
    {
        run(test, {Manner::blocking, Manner::nonblocking, Manner::persistent});
    }

private:
    unsigned long long run(const Test& test, Manner manner)
    {
        constexpr int starts = 3;
        MPI_Request request = MPI_REQUEST_NULL;
        if (manner == Manner::persistent) call(test, manner, &request);
        const int calls = manner == Manner::persistent ? starts : 1;
        for (int i = 0; i < calls; ++i) {
            test.fill(++pattern_);
            if (manner == Manner::persistent) {
                session_.ok(MPI_Start(&request), "MPI_Start");
            } else {
                call(test, manner, &request);
            }
            if (manner != Manner::blocking) {
                session_.ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
            }
            test.check(pattern_);
        }
        if (manner == Manner::persistent)
            session_.ok(MPI_Request_free(&request), "MPI_Request_free");
        return static_cast<unsigned long long>(calls);
    }

    void call(const Test& test, Manner manner, MPI_Request* request)
    {
        session_.ok(call_large(test.collective, manner, test.arguments, MPI_COMM_WORLD, request),
                    test.name);
    }

    // hier serves calls without bytes in any case.
    void compare(const Test& test, Counted which, Counters::Values before, unsigned long long calls)
    {
        observer_.compare_totals(before, calls, which);
        if (observer_.expect() == Expect::fallback && test.has_bytes) {
            const Counters::Values after = observer_.read(which);
            session_.check(after.fallbacks - before.fallbacks == calls &&
                               after.served == before.served,
                           "%s, %s: not handed on", counted_name(which), test.name);
        }
    }

    Session& session_;
    Observer& observer_;
    int pattern_ = 0;
};

// More items than an int can count, but without bytes.
void run_empty_items(LargeCounts& calls, Session& session)
{
    MPI_Datatype empty = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    const auto ranks = static_cast<std::size_t>(session.size());
    const auto many = static_cast<MPI_Count>(4 * beyond_int + 3);
    unsigned char send = poison, receive = poison;
    for (const auto collective : {CountedCollective::allgather, CountedCollective::allgatherv}) {
        calls.run({"items without bytes",
                   collective,
                   {&send, many, empty, &receive, std::vector<MPI_Count>(ranks, many),
                    std::vector<MPI_Aint>(ranks, static_cast<MPI_Aint>(beyond_int)), empty},
                   [](int) {},
                   [&](int) {
                       session.check(send == poison && receive == poison,
                                     "items without bytes: a byte has changed");
                   },
                   false});
    }
    MPI_Type_free(&empty);
}

// Open MPI 6.0's own modules crash in blocking calls with such counts. The others never go to them.
void run_large_blocks(LargeCounts& calls, Session& session, std::size_t bytes, bool by_hier)
{
    LargeBlocks equal(session, CountedCollective::allgather, bytes, false);
    if (by_hier) calls.run(equal.test(), {Manner::blocking});
    calls.run(equal.test(), {Manner::persistent});
    LargeBlocks in_place(session, CountedCollective::allgatherv, bytes, true);
    calls.run(in_place.test(), {Manner::nonblocking});
}

void run_all(LargeCounts& calls, Session& session, bool by_hier)
{
    for (const bool in_place : {false, true}) {
        FarBlocks plain(session, MPI_BYTE, 1, 1, in_place);
        calls.run(plain.test());
        FarBlocks gaps(session, MPI_INT, 4, 12, in_place);
        calls.run(gaps.test());
    }
    run_empty_items(calls, session);
    const long power = session.number("blocks", 0);
    if (power != 0 && (power < 20 || power > 40)) session.usage("--blocks takes 0, or 20 to 40");
    if (power != 0) run_large_blocks(calls, session, std::size_t{1} << power, by_hier);
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "large_counts", {"expect", "blocks"});
    if (!has_large_counts) {
        if (session.rank() == 0) {
            std::printf("this MPI library has no calls with counts of 64 bits\n");
            std::fflush(stdout);
        }
        MPI_Finalize();  // mpirun kills the others when one rank has ended so
        return 77;
    }
    Observer observer(session);
    LargeCounts calls(session, observer);
    run_all(calls, session, observer.expect() == Expect::hier && session.size() > 1);
    observer.close();
    return session.finish();
}
