// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE. Every thread has a communicator of its own. All threads make their calls at the same time, also
// the first ones, which make the teams.
#include "test/mpi/lib/support.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace hier_test;

namespace {

// Makes the calls of one thread. Returns the first failure, or nothing. It runs beside other threads, so it does not
// use the session.
std::string work(MPI_Comm comm, int thread, int calls)
{
    constexpr std::size_t sizes[] = {8, 4097, 100003};
    const int ranks = size_of(comm);
    const int rank = rank_of(comm);
    for (int i = 0; i < calls; ++i) {
        const std::size_t bytes =
            sizes[pick(static_cast<std::uint64_t>(thread), static_cast<std::uint64_t>(i), 3)];
        const int call = thread * 1000000 + i;
        const std::vector<unsigned char> send = Pattern(rank, call).bytes(bytes);
        std::vector<unsigned char> receive(bytes * static_cast<std::size_t>(ranks), poison);
        const auto count = static_cast<int>(bytes);
        const std::string where =
            "thread " + std::to_string(thread) + ", call " + std::to_string(i) + ": ";
        const int status =
            MPI_Allgather(send.data(), count, MPI_BYTE, receive.data(), count, MPI_BYTE, comm);
        if (status != MPI_SUCCESS) {
            return where + "error code " + std::to_string(status);
        }
        for (int from = 0; from < ranks; ++from) {
            if (Pattern(from, call)
                    .mismatch(receive.data() + static_cast<std::size_t>(from) * bytes, bytes)) {
                return where + "block of rank " + std::to_string(from) + " wrong";
            }
        }
    }
    return {};
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "threads", {"expect", "min-bytes", "threads", "calls"},
                    MPI_THREAD_MULTIPLE);
    if (session.thread_level() < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        if (session.rank() == 0) {
            std::printf("this MPI library provides no MPI_THREAD_MULTIPLE\n");
        }
        return 77;
    }
    Observer observer(session);
    const auto threads = static_cast<int>(session.number("threads", 2));
    const auto calls = static_cast<int>(session.number("calls", 100));

    // Every other communicator has the ranks in reverse order, so that the teams differ.
    std::vector<MPI_Comm> comms;
    for (int i = 0; i < threads; ++i) {
        MPI_Comm comm;
        MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 == 0 ? session.rank() : -session.rank(), &comm);
        comms.push_back(comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    session.phase("%d threads, %d calls each", threads, calls);
    const Counters::Values before = observer.read();
    std::vector<std::string> wrong(comms.size());
    {
        std::vector<std::jthread> running;
        for (int i = 0; i < threads; ++i) {
            const auto at = static_cast<std::size_t>(i);
            running.emplace_back(
                [&wrong, &comms, at, i, calls] { wrong[at] = work(comms[at], i, calls); });
        }
    }
    for (const std::string& text : wrong) {
        session.check(text.empty(), "%s", text.c_str());
    }
    if (session.size() > 1) {
        observer.compare_totals(before, static_cast<unsigned long long>(threads) *
                                            static_cast<unsigned long long>(calls));
    }
    session.phase("freeing communicators");
    for (MPI_Comm& comm : comms) {
        MPI_Comm_free(&comm);
    }
    return session.finish();
}
