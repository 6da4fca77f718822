// SPDX-License-Identifier: BSD-3-Clause
#include "worker.hpp"

#include <algorithm>
#include <thread>

namespace hier_test::fuzz {

Worker::Worker(MPI_Comm base, const Plan& plan, std::uint64_t thread)
    : plan_(plan), base_(base),
      arena_(mix(mix(plan.seed, thread), static_cast<std::uint64_t>(rank_of(base)))),
      communicators_(base, mix(plan.seed, thread))
{
    MPI_Comm_set_errhandler(base, MPI_ERRORS_RETURN);
    // Errors of calls that know no communicator go to one of these.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

void Worker::run(std::uint64_t number)
{
    const Case drawn{plan_.seed, number};
    Random common = drawn.common();
    const KindOfCase& kind = draw_kind_of_case(common, plan_.wanted);
    const std::vector<MPI_Comm> comms =
        draw_communicators(kind.communicators, number / plan_.threads, common);
    if (std::all_of(comms.begin(), comms.end(),
                    [](MPI_Comm comm) { return comm == MPI_COMM_NULL; })) {
        return;
    }
    Random local = drawn.local(rank_of(base_));
    const bool is_corrupt = number == plan_.corrupt && rank_of(base_) == 0;
    const Outcome outcome = kind.run({drawn, plan_.wanted, comms.front(), comms, arena_,
                                      plan_.largest, plan_.own_types, is_corrupt},
                                     common, local);
    ++tally_.cases;
    for (std::size_t i = 0; i < number_of_counted; ++i) {
        tally_.calls[i] += outcome.calls[i];
    }
    if (!outcome.is_good()) {
        report(number, outcome);
    }
}

std::vector<MPI_Comm> Worker::draw_communicators(std::size_t count, std::uint64_t number,
                                                 Random& common)
{
    std::vector<MPI_Comm> comms;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t slot = common.one_in(4) ? 0 : common.between(1, Communicators::slots - 1);
        comms.push_back(communicators_.get(slot, number));
    }
    return comms;
}

void Worker::rest()
{
    communicators_.free_all();
    arena_.clear();
}

void Worker::report(std::uint64_t number, const Outcome& outcome)
{
    using namespace std::chrono_literals;
    constexpr unsigned long long shown =
        3;  // on each rank, because one cause often fails many cases
    if (++tally_.failures > shown) {
        return;
    }
    std::string wrong = outcome.difference;
    if (outcome.status != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int length = 0;
        MPI_Error_string(outcome.status, text, &length);
        wrong = text;
    }
    std::fprintf(stderr, "fuzz: case %llu, rank %d: %s: %s\nfuzz: alone: %s --case %llu\n",
                 static_cast<unsigned long long>(number), rank_of(base_), outcome.text.c_str(),
                 wrong.c_str(), plan_.rerun.c_str(), static_cast<unsigned long long>(number));
    if (outcome.status != MPI_SUCCESS) {
        std::this_thread::sleep_for(500ms);  // so that other ranks can say the same
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

}  // namespace hier_test::fuzz
