// SPDX-License-Identifier: BSD-3-Clause
// Small calls may end in their start. What else a program has started needs Open MPI's progress loop all the same: each
// form of a call makes a pass of it now and then. Rank 0 comes last, so that its calls end in their start.
#include "test/mpi/lib/passes.hpp"
#include "test/mpi/lib/persistent.hpp"
#include "test/mpi/lib/support.hpp"

#include <unistd.h>

#include <functional>
#include <vector>

using namespace hier_test;

namespace {

constexpr int bytes = 8, rounds = 64, least = 2;

class Forms {
public:
    explicit Forms(Session& session)
        : session_(session), receive_(places * index(session.size())),
          counts_(index(session.size()), bytes)
    {
        for (int rank = 0; rank < session.size(); ++rank) displacements_.push_back(rank * bytes);
        counts_.back() = bytes / 2;
        if (has_persistent)
            session.ok(allgather_init(send_, bytes, MPI_BYTE, receive_.data(), bytes, MPI_BYTE,
                                      MPI_COMM_WORLD, &persistent_),
                       "MPI_Allgather_init");
    }
    Forms(const Forms&) = delete;
    Forms& operator=(const Forms&) = delete;
    ~Forms()
    {
        if (persistent_ != MPI_REQUEST_NULL) MPI_Request_free(&persistent_);
    }

    // `place`: another one is another call.
    void gather(int place)
    {
        unsigned char* const to = receive_.data() + (place % 2) * bytes;
        session_.ok(MPI_Allgather(send_, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD),
                    "MPI_Allgather");
    }
    void gather_uneven()
    {
        const int own = counts_[index(session_.rank())];
        session_.ok(MPI_Allgatherv(send_, own, MPI_BYTE, receive_.data(), counts_.data(),
                                   displacements_.data(), MPI_BYTE, MPI_COMM_WORLD),
                    "MPI_Allgatherv");
    }
    void start()
    {
        MPI_Request request = MPI_REQUEST_NULL;
        session_.ok(MPI_Iallgather(send_, bytes, MPI_BYTE, receive_.data(), bytes, MPI_BYTE,
                                   MPI_COMM_WORLD, &request),
                    "MPI_Iallgather");
        session_.ok(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    }
    void start_again()
    {
        session_.ok(MPI_Start(&persistent_), "MPI_Start");
        session_.ok(MPI_Wait(&persistent_, MPI_STATUS_IGNORE), "MPI_Wait");
    }

private:
    static constexpr std::size_t places = 2 * bytes;
    static std::size_t index(int i) { return static_cast<std::size_t>(i); }

    Session& session_;
    unsigned char send_[bytes] = {};
    std::vector<unsigned char> receive_;
    std::vector<int> counts_, displacements_;
    MPI_Request persistent_ = MPI_REQUEST_NULL;
};

void check(Session& session, const char* form, const std::function<void(int)>& call)
{
    session.phase("%s", form);
    const long before = passes;
    for (int round = 0; round < rounds; ++round) {
        constexpr useconds_t late_us = 1000;
        if (session.rank() == 0) usleep(late_us);
        call(round);
    }
    session.check(passes - before >= least, "%d calls by %s make %ld passes", rounds, form,
                  passes - before);
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "attention", {"expect"});
    Observer observer(session);
    {
        Forms forms(session);
        check(session, "the same MPI_Allgather", [&](int) { forms.gather(0); });
        check(session, "MPI_Allgather", [&](int round) { forms.gather(round); });
        check(session, "MPI_Allgatherv", [&](int) { forms.gather_uneven(); });
        check(session, "MPI_Iallgather", [&](int) { forms.start(); });
        if (has_persistent)
            check(session, "a persistent request", [&](int) { forms.start_again(); });
    }
    observer.close();
    return session.finish();
}
