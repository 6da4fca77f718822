// SPDX-License-Identifier: BSD-3-Clause
// A rank that has left a call and computes makes no MPI calls. This must not delay the ranks that are still in the
// call. So every rank waits outside MPI after each call, until all ranks have left the call.
#include "test/mpi/lib/support.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <vector>

using namespace hier_test;

namespace {

constexpr int max_ranks = 64;

// Memory that all ranks see without MPI: the number of calls that each rank has left. All ranks are on one machine, on
// virtual nodes.
class Departures {
public:
    explicit Departures(Session& session) : rank_(session.rank()), ranks_(session.size())
    {
        char path[] = "/tmp/hier-absent-XXXXXX";
        int file = rank_ == 0 ? mkstemp(path) : -1;
        MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
        if (rank_ != 0) {
            file = open(path, O_RDWR);
        }
        const bool is_there = file >= 0 && ftruncate(file, sizeof(Left)) == 0;
        void* at = is_there
                       ? mmap(nullptr, sizeof(Left), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                       : MAP_FAILED;
        session.check(at != MAP_FAILED, "no memory that all ranks see: %s", path);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank_ == 0) {
            unlink(path);
        }
        if (at == MAP_FAILED) {
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        left_ = static_cast<Left*>(at);
    }

    void wait_for_all(int call)
    {
        left_->calls[rank_].store(call);
        for (int rank = 0; rank < ranks_; ++rank) {
            while (left_->calls[rank].load() < call) {
                usleep(20);
            }
        }
    }

private:
    struct Left {
        std::atomic<int> calls[max_ranks];
    };

    int rank_;
    int ranks_;
    Left* left_ = nullptr;
};

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "absent", {"expect", "min-bytes", "calls"});
    if (session.size() > max_ranks) {
        session.usage("at most %d ranks", max_ranks);
    }
    Observer observer(session);
    Departures departures(session);
    const auto calls = static_cast<int>(session.number("calls", 20));
    int call = 0;
    for (const int bytes : {16, 8192, 65536, 300001, 2 << 20}) {
        std::vector<unsigned char> receive(static_cast<std::size_t>(bytes) *
                                           static_cast<std::size_t>(session.size()));
        for (int i = 0; i < calls; ++i) {
            session.phase("%d bytes a rank, call %d", bytes, i);
            const std::vector<unsigned char> send =
                Pattern(session.rank(), ++call).bytes(static_cast<std::size_t>(bytes));
            session.ok(observer.allgather(send.data(), bytes, MPI_BYTE, receive.data(), bytes,
                                          MPI_BYTE, MPI_COMM_WORLD),
                       "MPI_Allgather");
            session.phase("%d bytes a rank, call %d: the others are still in it", bytes, i);
            departures.wait_for_all(call);
            check_blocks(session, receive.data(), static_cast<std::size_t>(bytes), session.size(),
                         call, "absent");
        }
    }
    return session.finish();
}
