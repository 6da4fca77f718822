// SPDX-License-Identifier: BSD-3-Clause
// The kinds of cases. A collective that hier serves has one kind, or several: blocking, nonblocking, persistent.
#pragma once

#include "arena.hpp"
#include "test/mpi/lib/support.hpp"

#include <string>

namespace hier_test::fuzz {

// What a case gets.
struct Setting {
    Case drawn;
    MPI_Comm comm;  // with this rank in it
    Arena& arena;
    std::size_t largest;  // bytes of a rank
    bool own_types;       // hier serves all calls, so that each rank may have its own datatypes
    bool is_corrupt;      // the case has to find a byte that it changes itself
};

// What a case leaves.
struct Outcome {
    std::string text;        // what was called
    std::string difference;  // what is wrong; empty: nothing
    int status = MPI_SUCCESS;
    int calls = 0;  // with bytes, on more than one rank: hier serves them
};

struct KindOfCase {
    Counted collective;
    unsigned weight;  // how often it is drawn
    Outcome (*run)(const Setting& setting, Random& common, Random& local);
};

// The collectives whose cases are drawn.
struct Wanted {
    bool collectives[number_of_counted] = {true, true};

    bool has(Counted which) const { return collectives[static_cast<std::size_t>(which)]; }
};

// The kind of this case, equal on all ranks.
const KindOfCase& draw_kind_of_case(Random& common, const Wanted& wanted);

// allgather.cpp
Outcome run_allgather(const Setting& setting, Random& common, Random& local);
// allgatherv.cpp
Outcome run_allgatherv(const Setting& setting, Random& common, Random& local);

}  // namespace hier_test::fuzz
