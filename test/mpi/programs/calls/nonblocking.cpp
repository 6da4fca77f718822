// SPDX-License-Identifier: BSD-3-Clause
// MPI_Iallgather and MPI_Iallgatherv: what a program may do while requests are active. Each byte is
// compared, with those in gaps and around the buffers.
//
//   --large N    MiB of all ranks in a call that is staged [16]
//   --threads N  threads that call at the same time; 0: none, and MPI without threads [0]
//   --seed S     of the kinds of memory and the alignments [1]
#include "nonblocking.hpp"

#include <algorithm>

using namespace hier_test;

namespace {

void run_all(Tester& tester)
{
    for (const std::size_t bytes : {8UL, 65536UL, 1UL << 20}) {
        run_first_call(tester, bytes);
    }
    run_early_tests(tester);
    run_reverse(tester);
    run_between(tester);
    run_duplicates(tester);
    run_freed_communicator(tester);
    run_freed_requests(tester);
    run_freed_types(tester);
    run_ways(tester);
    run_large(tester);
    // This is promised by the component alone. Stock modules leave statuses as they are.
    if (tester.observer.expect() == Expect::hier && tester.ranks > 1) {
        run_statuses(tester);
        for (const int offender : {0, tester.ranks - 1}) {
            run_wrong_size(tester, offender, true);
            run_wrong_size(tester, offender, false);
        }
    }
}

bool wants_threads(int argc, char** argv)
{
    return std::any_of(argv + 1, argv + argc,
                       [](const char* word) { return std::string(word) == "--threads"; });
}

}  // namespace

int main(int argc, char** argv)
{
    const std::string program = std::string(fuzz::prefix_of_programs) + "nonblocking";
    const int level = wants_threads(argc, argv) ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    Session session(argc, argv, program.c_str(), {"expect", "large", "threads", "seed"}, level);
    if (session.thread_level() < level) {
        MPI_Finalize();
        if (session.rank() == 0) {
            std::printf("this MPI library provides no MPI_THREAD_MULTIPLE\n");
        }
        return 77;
    }
    Observer observer(session);
    fuzz::choose_device(session.rank());
    {
        Tester tester(session, observer);
        for (const CountedCollective collective : both_collectives) {
            tester.collective = collective;
            run_all(tester);
        }
        tester.checker.check_servers();
    }
    if (level == MPI_THREAD_MULTIPLE) {
        run_threads(session, static_cast<int>(session.number("threads", 0)));
    }
    observer.close();
    return session.finish();
}
