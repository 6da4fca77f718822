// SPDX-License-Identifier: BSD-3-Clause
// When each op of one run became runnable, was started and ended.
//
//     dependencies done        handed to the transport       completed
//           |------- queued ----------|------- under way ------|
//        runnable                  started                   ended
//
// A wait has no dependencies. It counts as runnable and started when it is the next wait that is
// due from its peer. A copy by a GPU is started when the device gets it. The copy is ended when its
// event has been seen.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "exec/program.hpp"

namespace hier {

class Trace {
public:
    // Nanoseconds of the steady clock, which ranks of one host share. 0: not in this run.
    struct Times {
        std::int64_t runnable = 0, started = 0, ended = 0;
    };

    // Later runs of up to `ops` ops allocate nothing.
    void reserve(std::uint32_t ops) { times_.reserve(ops); }
    // Begins a new run and forgets the last one.
    void begin(std::uint32_t ops)
    {
        times_.assign(ops, Times{});
        begin_ = now();
    }
    // The same, but the run began when the last one did.
    void begin_anew(std::uint32_t ops) { times_.assign(ops, Times{}); }
    void runnable(std::uint32_t op) { times_[op].runnable = now(); }
    void started(std::uint32_t op) { times_[op].started = now(); }
    void ended(std::uint32_t op) { times_[op].ended = now(); }
    // The run is over; `program` is what was run.
    void end(const Program& program);

    std::int64_t begin_time() const { return begin_; }
    std::int64_t end_time() const { return end_; }
    const std::vector<Times>& times() const { return times_; }

private:
    static std::int64_t now()
    {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(
                   std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }
    void date_waits(const std::vector<std::uint32_t>& waits);

    std::int64_t begin_ = 0, end_ = 0;
    std::vector<Times> times_;
};

}  // namespace hier
