// SPDX-License-Identifier: BSD-3-Clause
// All ranks of a team in one process. Each has its executor, the network is the fake one, and a
// seed decides the order of events.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coll/common/choice.hpp"
#include "exec/executor.hpp"
#include "exec/program.hpp"
#include "fake_network.hpp"
#include "hier/plan.hpp"

namespace hier::test {

// The ranks whose network reaches only a bounce buffer. some: this changes by rank and by call.
enum class Bounce { none, some, all };
// The calls that are published inside the nodes. some: all but every third call.
enum class Publish { none, some, all };

struct Scenario {
    std::vector<int> nodes;  // of each rank
    Route route = Route::direct;
    std::size_t bytes = 7;  // a rank
    std::size_t chunk = 3;
    int depth = 4;
    int calls = 3;  // one after the other; each rank starts the next one at once
    Executor::Limits limits{};
    Weather weather{};
    std::optional<Sabotage> sabotage{};
    std::chrono::microseconds pass{10};  // what the clock moves on in one pass of one rank
    std::vector<std::chrono::microseconds> late{};  // by rank: when it enters its first call
    std::vector<std::size_t> bytes_of_rank{};       // where a rank passes another size than `bytes`
    int refuses = -1;    // a rank that takes part in no further call: the caller says so in its
    int refuses_at = 0;  // so many'th step
    int freezes = -1;    // a rank that enters its first call and then does nothing more
    int dies = -1;       // a rank whose process ends; so do its transfers inside the node
    std::chrono::microseconds dies_at{0};
    std::chrono::microseconds told_after{0};  // the others hear of the death so much later
    Bounce bounce = Bounce::none;
    Publish publish = Publish::none;
    // All ranks stop at this time, for so long.
    std::chrono::microseconds suspended_at{0};
    std::chrono::microseconds suspended_for{0};
};

struct Outcome {
    std::string fault;            // a broken rule or wrong bytes; empty: none
    std::vector<Status> status;   // of each rank's last call; in_progress: it never ended
    std::vector<int> calls_done;  // of each rank, without an error
    bool has_struck = false;      // the sabotage has happened
    std::chrono::microseconds elapsed{0};
};

// Runs until every rank has made its calls or failed, and for `max_passes` passes at most.
Outcome simulate(const Scenario& scenario, std::size_t max_passes = 200000);

std::string text_of(const Scenario& scenario);

}  // namespace hier::test
