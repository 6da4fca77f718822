// SPDX-License-Identifier: BSD-3-Clause
// How much pinned memory large calls on device memory cost. Each of several communicators gathers a large result, once
// in contiguous blocks and once with a datatype that has gaps. Only the simulated runtime tells how much memory it has
// pinned.
//
//   --mib m     the bytes of a result, in MiB [40]
//   --most m    MiB of pinned staging memory that the process may have at any time
#include "test/mpi/lib/gpu_memory.hpp"

#include "test/sim/hip_sim.h"

#include <dlfcn.h>

#include <vector>

using namespace hier_test;

namespace {

constexpr std::size_t mib = 1 << 20;

std::size_t live(const char* what)
{
    using Function = decltype(hip_sim_live);
    void* const found = dlsym(RTLD_DEFAULT, "hip_sim_live");
    if (found == nullptr) {
        std::fprintf(stderr, "gpu_kept: this is not the simulated runtime\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return reinterpret_cast<Function*>(found)(what);
}

std::size_t blocks() { return live("pinned") + live("registrations"); }

class Run {
public:
    Run(Session& session, Observer& observer, std::size_t bytes)
        : session_(session), observer_(observer),
          block_(bytes / static_cast<std::size_t>(session.size()) / 8 * 8),
          send_(Kind::device, block_),
          receive_(Kind::device, 2 * block_ * static_cast<std::size_t>(session.size()))
    {
        // Half of every block of 4096 bytes is a gap.
        MPI_Type_vector(static_cast<int>(block_ / 2048), 2048, 4096, MPI_BYTE, &rows_);
        MPI_Type_create_resized(rows_, 0, static_cast<MPI_Aint>(block_ / 2048 * 4096), &gaps_);
        MPI_Type_commit(&gaps_);
    }
    ~Run()
    {
        MPI_Type_free(&rows_);
        MPI_Type_free(&gaps_);
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    void gather(MPI_Comm comm)
    {
        const int call = ++call_;
        session_.phase("call %d", call);
        const Bytes mine = Pattern(session_.rank(), call).bytes(block_);
        send_.write(0, mine);
        const std::size_t before = blocks();
        session_.ok(observer_.allgather(send_.data(), static_cast<int>(block_), MPI_BYTE,
                                        receive_.data(), static_cast<int>(block_), MPI_BYTE, comm),
                    "MPI_Allgather");
        for (int rank = 0; rank < session_.size(); rank++) {
            const Bytes got = receive_.read(static_cast<std::size_t>(rank) * block_, block_);
            session_.check(got == Pattern(rank, call).bytes(block_),
                           "call %d: rank %d's block is wrong", call, rank);
        }
        session_.ok(observer_.allgather(send_.data(), static_cast<int>(block_ / 2048 * 2048),
                                        MPI_BYTE, receive_.data(), 1, gaps_, comm),
                    "MPI_Allgather");
        for (int rank = 0; rank < session_.size(); rank++) {
            const std::size_t at = static_cast<std::size_t>(rank) * (block_ / 2048 * 4096);
            const Bytes expected = Pattern(rank, call).bytes(block_);
            const Bytes first = receive_.read(at, 2048);
            const Bytes last = receive_.read(at + (block_ / 2048 - 1) * 4096, 2048);
            const auto end = expected.begin() + static_cast<std::ptrdiff_t>(block_ / 2048 * 2048);
            session_.check(first == Bytes(expected.begin(), expected.begin() + 2048) &&
                               last == Bytes(end - 2048, end),
                           "call %d: rank %d's block with gaps is wrong", call, rank);
        }
        session_.check(blocks() >= before, "pinned memory was freed inside a call");
        most_ = std::max(most_, live("pinned bytes"));
    }
    std::size_t most() const { return most_; }

private:
    Session& session_;
    Observer& observer_;
    std::size_t block_, most_ = 0;
    Memory send_, receive_;
    MPI_Datatype rows_ = MPI_DATATYPE_NULL, gaps_ = MPI_DATATYPE_NULL;
    int call_ = 0;
};

void measure(Session& session)
{
    Observer observer(session);
    Run run(session, observer, static_cast<std::size_t>(session.number("mib", 40)) * mib);
    std::vector<MPI_Comm> comms(static_cast<std::size_t>(session.number("communicators", 4)));
    for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (MPI_Comm comm : comms) run.gather(comm);
    if (session.rank() == 0)
        std::printf("gpu_kept: %zu KiB of pinned memory at most\n", run.most() >> 10);
    constexpr std::size_t segments = 1 << 20;  // that the ranks of a node share
    session.check(run.most() <=
                      static_cast<std::size_t>(session.number("most", 128)) * mib + segments,
                  "%zu KiB of pinned memory", run.most() >> 10);
    session.check(run.most() > 0, "nothing was pinned: this case tests nothing");
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
    observer.close();  // or MPI_Finalize would leave the component open
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "gpu_kept",
                    {"expect", "min-bytes", "mib", "communicators", "most"});
    measure(session);
    return session.finish();
}
