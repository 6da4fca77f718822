// SPDX-License-Identifier: BSD-3-Clause
// The end of a run that has failed. Afterwards nobody reads or writes the application's buffers.
//
//     raise    tell the others, who raise the failure too; start nothing more
//     drain    let our own transfers end
//     stop     tell the others, behind all data, that this rank writes no more
//     at rest  no peer may still write here
//
// The steps up to rest have a bound. doc/failures.md says how ranks see each other's failure.
#pragma once

#include <chrono>
#include <vector>

#include "exec/run.hpp"
#include "hier/status.hpp"

namespace hier {

class Failure {
public:
    // `drain` is the bound, from raise() on.
    Failure(const Run& run, std::chrono::seconds drain) : run_(run), drain_(drain) {}

    // A run begins, and nothing of it has failed.
    void begin();
    // Only the first error counts. The code that found the error has logged its cause.
    void raise(Status status);
    // Between two runs: this rank takes part in no further one.
    void refuse(Status status);
    // The processes that have ended, by rank of the team.
    void note_dead(const std::vector<bool>& is_dead) { is_dead_ = is_dead; }

    bool is_raised() const { return failed(status_); }
    Status status() const { return status_; }
    // After raise(): is the run at rest, or is the time over? Called until it is true.
    bool has_ended();

private:
    void tell_all(Status status);
    static void stop(Transport& transport);
    bool is_at_rest();
    bool may_be_written(Level level) const;

    const Run& run_;
    std::chrono::seconds drain_;
    Status status_ = Status::ok;
    Run::Clock::time_point drain_end_;
    bool has_stopped_[2] = {};   // by level: its peers have been told
    std::vector<bool> is_dead_;  // empty: nobody is known to be
};

}  // namespace hier
