// SPDX-License-Identifier: BSD-3-Clause
// Blocking, nonblocking and persistent calls of both collectives, mixed, from several threads that
// share communicators (MPI_THREAD_MULTIPLE). Each byte is compared, with those around the buffers.
// The calls are made in parts. Between two parts the process is measured, so that what grows is
// found. If no call ends for some time, a line of each thread says what it does.
//
//   --calls N                   of a rank, on all communicators together [3000]
//   --threads N                 at least one for each communicator [4]
//   --communicators N           [2]
//   --seed S                    of the calls [1]
//   --stall N                   seconds without the end of a call that are a hang [45]
//   --hang N, --corrupt N       breaks this call of communicator 0, on its rank 0
//   --leak N                    bytes that each call of communicator 0 loses, on its rank 0
#include "shared_communicator.hpp"
#include "test/mpi/lib/resources.hpp"
#include "test/mpi/programs/soak/growth.hpp"

#include <malloc.h>
#include <thread>

using namespace hier_test;
using namespace hier_test::stress;

namespace {

constexpr int parts = 12;
constexpr int warm_up = 3;  // parts

class Stress {
public:
    explicit Stress(Session& session)
        : session_(session), calls_(static_cast<std::uint64_t>(session.number("calls", 3000))),
          threads_(static_cast<int>(session.number("threads", 4))),
          watch_(session.rank(), session.number("stall", 45))
    {
        const auto count = static_cast<int>(session.number("communicators", 2));
        if (threads_ > max_threads || count < 1 || threads_ < count) {
            session.usage("%d threads cannot share %d communicators", threads_, count);
        }
        const Sabotage sabotage{.hang = sabotaged("hang"),
                                .corrupt = sabotaged("corrupt"),
                                .leak = session.number("leak", 0)};
        const auto seed = static_cast<std::uint64_t>(session.number("seed", 1));
        for (int i = 0; i < count; ++i) {
            // Every other communicator has the ranks in reverse order.
            MPI_Comm comm = MPI_COMM_NULL;
            MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 == 0 ? session.rank() : -session.rank(), &comm);
            comms_.push_back(std::make_unique<SharedCommunicator>(comm, i, seed, sabotage));
        }
    }

    void run()
    {
        for (int part = 1; part <= parts; ++part) {
            session_.phase("part %d of %d", part, parts);
            run_threads(calls_ / comms_.size() * static_cast<std::uint64_t>(part) / parts);
            for (const auto& comm : comms_) {
                comm->rest();
            }
            MPI_Barrier(MPI_COMM_WORLD);  // all ranks have freed their buffers
            for (const auto& comm : comms_) {
                comm->close_mappings();
            }
            read(part);
        }
        for (const auto& comm : comms_) {
            session_.check(comm->failure().empty(), "%s", comm->failure().c_str());
        }
        for (const std::string& text : growth_.found()) {
            session_.check(false, "%s", text.c_str());
        }
    }

    unsigned long long made(Counted which) const
    {
        unsigned long long all = 0;
        for (const auto& comm : comms_) {
            all += comm->calls(which);
        }
        return all;
    }

private:
    long sabotaged(const char* option) const { return session_.number(option, 0) - 1; }

    // A thread keeps to one communicator. If it did not, the threads of two ranks could all wait for
    // calls of different communicators.
    void run_threads(std::uint64_t end)
    {
        std::atomic<int> running{threads_};
        std::vector<std::jthread> all;
        for (int i = 0; i < threads_; ++i) {
            SharedCommunicator& comm = *comms_[static_cast<std::size_t>(i) % comms_.size()];
            all.emplace_back([&comm, &running, i, end] {
                Doing doing(i);
                comm.work(doing, static_cast<std::uint64_t>(i), end);
                --running;
            });
        }
        watch_.watch(running);
    }

    // No rank measures while another one still calls.
    void read(int part)
    {
        MPI_Barrier(MPI_COMM_WORLD);
        const std::vector<soak::Figure> figures = soak::measure(0);
        MPI_Barrier(MPI_COMM_WORLD);
        if (part > warm_up) growth_.add(figures);
        if (session_.rank() == 0 && (part == warm_up + 1 || part == parts)) {
            std::printf("figure: after %d of %d parts:", part, parts);
            for (const soak::Figure& figure : figures) {
                std::printf(" %s %.0f,", figure.name.c_str(), figure.value);
            }
            std::printf(" on rank 0\n");
        }
    }

    Session& session_;
    std::uint64_t calls_;
    int threads_;
    HangWatch watch_;
    std::vector<std::unique_ptr<SharedCommunicator>> comms_;
    soak::Growth growth_;
};

}  // namespace

int main(int argc, char** argv)
{
    keep_pages_small();
    // With an arena for each thread, what the allocator keeps varies by megabytes.
    mallopt(M_ARENA_MAX, 1);
    const std::string program = std::string(fuzz::prefix_of_programs) + "stress";
    Session session(
        argc, argv, program.c_str(),
        {"expect", "calls", "threads", "communicators", "seed", "stall", "hang", "corrupt", "leak"},
        MPI_THREAD_MULTIPLE);
    if (session.thread_level() < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        if (session.rank() == 0) {
            std::printf("this MPI library provides no MPI_THREAD_MULTIPLE\n");
        }
        return 77;
    }
    Observer observer(session);
    fuzz::choose_device(session.rank());
    {
        Stress stress(session);
        Counters::Values before[number_of_counted];
        for (std::size_t i = 0; i < number_of_counted; ++i) {
            before[i] = observer.read(static_cast<Counted>(i));
        }
        stress.run();
        for (std::size_t i = 0; i < number_of_counted && observer.expect() == Expect::hier; ++i) {
            const auto which = static_cast<Counted>(i);
            const Counters::Values after = observer.read(which);
            const auto served = after.served - before[i].served;
            const auto fallbacks = after.fallbacks - before[i].fallbacks;
            // The part between two readings calls MPI_Allgather, too.
            session.check(served >= stress.made(which) && fallbacks == 0,
                          "of %llu calls of %s hier served %llu and handed on %llu",
                          stress.made(which), counted_name(which), served, fallbacks);
        }
    }
    observer.close();
    return session.finish();
}
