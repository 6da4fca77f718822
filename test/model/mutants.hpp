// SPDX-License-Identifier: BSD-3-Clause
// Wrong plans, made from right ones by one small change each. A model that accepts one of them
// checks too little.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model.hpp"

namespace hier::model {

struct Mutant {
    const char* change;
    int op;  // its index in the right plan; -1: the whole plan was changed
    Plan plan;
    // Harmless in all calls but the last. The rank fails to wait for something that happens while
    // it is in its next call.
    bool only_last_call = false;
};

// The mutants of the plan of `rank`. `call` holds the right plans.
std::vector<Mutant> mutants_of(const Topology& topology, int rank, const Call& call);

}  // namespace hier::model
