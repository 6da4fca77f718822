// SPDX-License-Identifier: BSD-3-Clause
// Communicators that come and go while the cases run.
#pragma once

#include "random.hpp"
#include "test/mpi/lib/support.hpp"

#include <array>

namespace hier_test::fuzz {

// Several slots, each with one communicator at a time. Slot 0 has the given one for ever. The others have a new one after
// a number of cases that differs between slots. {seed, slot, generation} decide how it is made. A communicator is made
// when a case uses it first, and all ranks run the same cases, so calls on the given communicator agree.
class Communicators {
public:
    // `base` stays the caller's. No other thread may use it.
    Communicators(MPI_Comm base, std::uint64_t seed);
    ~Communicators();
    Communicators(const Communicators&) = delete;
    Communicators& operator=(const Communicators&) = delete;
    Communicators(Communicators&&) = delete;
    Communicators& operator=(Communicators&&) = delete;

    static constexpr std::size_t slots = 6;

    // The slot's communicator for the given case, which is at least the last one. MPI_COMM_NULL: it lacks this rank.
    // Communicators whose time is over are freed first.
    MPI_Comm get(std::size_t slot, std::uint64_t number);
    void free_all();
    // How many were made so far.
    unsigned long long made() const { return made_; }

private:
    struct Slot {
        bool is_made = false;
        std::uint64_t generation = 0;
        MPI_Comm comm = MPI_COMM_NULL;
    };
    static std::uint64_t generation_of(std::size_t slot, std::uint64_t number);
    static void free(Slot& slot);
    MPI_Comm make(std::size_t slot, std::uint64_t generation) const;

    MPI_Comm base_;
    std::uint64_t seed_;
    unsigned long long made_ = 0;
    std::array<Slot, slots> slots_;
};

}  // namespace hier_test::fuzz
