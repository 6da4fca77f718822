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

// Schedules in which one rank or one pair is slower than everything else: each of them once.
std::vector<Schedule> laggards(const Topology& topology);

// Schedules in which one operation of `rank` is later than everything else.
std::vector<Schedule> late_operations(int rank, const Call& call);

// Schedules in which one rail pair stops after some number of puts.
std::vector<Schedule> stalls(const Topology& topology, const Call& call);

class Hunt {
public:
    // Runs every mutant of every rank's plan in the second of two calls. If a mutant is wrong in
    // the first call too, it runs there as well.
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
