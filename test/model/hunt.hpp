// SPDX-License-Identifier: BSD-3-Clause
// Runs mutants until the model rejects them, and counts.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "model.hpp"
#include "mutants.hpp"

namespace hier::model {

// Each rank and each pair slower than everything else.
std::vector<Schedule> laggards(const Topology& topology);

// Each operation of `rank` later than everything else.
std::vector<Schedule> late_operations(int rank, const Call& call);

// Each rail pair stopped after each number of puts.
std::vector<Schedule> stalls(const Topology& topology, const Call& call);

class Hunt {
public:
    // Every mutant of every rank's plan, in the second of two calls and, where that is wrong too,
    // in the first.
    void all(const Topology& topology, const Call& call);

    int mutants() const { return mutants_; }
    int caught() const { return mutants_ - static_cast<int>(survivors_.size()); }
    int inspected() const { return inspected_; }  // caught before they ran
    const std::array<int, faults>& by_fault() const { return by_fault_; }
    const std::map<std::string, int>& by_change() const { return by_change_; }
    const std::vector<std::string>& survivors() const { return survivors_; }

private:
    Fault first_fault(const Topology& topology, std::vector<Call>& calls, int mutated, int rank);

    int mutants_ = 0;
    int inspected_ = 0;
    std::array<int, faults> by_fault_{};
    std::map<std::string, int> by_change_;
    std::vector<std::string> survivors_;
};

}  // namespace hier::model
