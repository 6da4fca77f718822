// SPDX-License-Identifier: BSD-3-Clause
// The kinds of cases. Each collective that hier serves has one for a blocking call alone. Nonblocking and persistent calls
// come in batches.
#pragma once

#include "operation.hpp"
#include "test/mpi/lib/persistent.hpp"

#include <string>

namespace hier_test::fuzz {

// The calls that are drawn.
struct Wanted {
    bool calls[number_of_counted] = {true, true, true, true, has_persistent, has_persistent};

    bool has(Counted which) const { return calls[static_cast<std::size_t>(which)]; }
    std::vector<Counted> list() const;
};

// What a case gets.
struct Setting {
    Case drawn;
    const Wanted& wanted;
    MPI_Comm comm;                // with this rank in it, where a case takes one communicator
    std::vector<MPI_Comm> comms;  // all that a case takes; MPI_COMM_NULL: without this rank
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
    // With bytes, on more than one rank: hier serves them.
    unsigned long long calls[number_of_counted] = {};

    bool is_good() const { return status == MPI_SUCCESS && difference.empty(); }
    void count(const Operation& operation, Manner manner)
    {
        const Counted which = counted(operation.collective(), manner);
        calls[static_cast<std::size_t>(which)] += operation.is_counted();
    }
};

struct KindOfCase {
    bool (*is_wanted)(const Wanted& wanted);
    unsigned weight;            // how often it is drawn
    std::size_t communicators;  // how many it takes
    Outcome (*run)(const Setting& setting, Random& common, Random& local);
};

// The kind of this case, equal on all ranks.
const KindOfCase& draw_kind_of_case(Random& common, const Wanted& wanted);

// allgather.cpp
std::unique_ptr<Operation> draw_allgather(const Setting& setting, Random& common, Random& local);
Outcome run_allgather(const Setting& setting, Random& common, Random& local);
// allgatherv.cpp
std::unique_ptr<Operation> draw_allgatherv(const Setting& setting, Random& common, Random& local);
Outcome run_allgatherv(const Setting& setting, Random& common, Random& local);
// batch.cpp: several calls at once, of all manners
Outcome run_batch(const Setting& setting, Random& common, Random& local);

// A case of one blocking call.
Outcome run_alone(Operation& operation, const Setting& setting);

}  // namespace hier_test::fuzz
