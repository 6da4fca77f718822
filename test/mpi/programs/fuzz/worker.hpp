// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "communicators.hpp"
#include "kinds.hpp"

#include <functional>

namespace hier_test::fuzz {

struct Plan {
    std::uint64_t seed = 1;
    std::size_t largest = std::size_t{8} << 20;
    std::uint64_t corrupt =
        ~0ULL;  // the number of a case that changes a byte of its result on one rank
    std::uint64_t threads = 1;  // case n belongs to thread n mod threads
    Wanted wanted;
    bool own_types = false;  // as of Setting
    std::string rerun;       // the command to which the number of a case is appended
};

struct Tally {
    unsigned long long cases = 0;  // in which this rank took part
    unsigned long long calls[number_of_counted] = {};
    unsigned long long failures = 0;
};

// Runs cases in one thread, on a communicator of its own. Whatever is wrong is printed at once. An error code ends the
// job, because the communicator takes no more calls.
class Worker {
public:
    Worker(MPI_Comm base, const Plan& plan, std::uint64_t thread);

    void run(std::uint64_t number);
    // Frees all communicators and buffers, collectively.
    void rest();
    const Tally& tally() const { return tally_; }
    unsigned long long communicators() const { return communicators_.made(); }

private:
    // Collective. MPI_COMM_NULL: one without this rank.
    std::vector<MPI_Comm> draw_communicators(std::size_t count, std::uint64_t number,
                                             Random& common);
    void report(std::uint64_t number, const Outcome& outcome);

    const Plan& plan_;
    MPI_Comm base_;
    Arena arena_;
    Communicators communicators_;
    Tally tally_;
};

}  // namespace hier_test::fuzz
