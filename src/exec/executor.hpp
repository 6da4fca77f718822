// SPDX-License-Identifier: BSD-3-Clause
// Runs one plan at a time over two transports: a state machine that never waits inside.
//
//            start                    progress ... progress
//              |   announce, copies,     |   completions -> successors become runnable
//              |   waits armed           |   signals polled -> waits end -> successors ...
//              v                         v   rail puts (a window), node puts (a budget)
//           running ------------------------------------------> done
//              \------ an error here or at a peer -> draining -> failed
//
// Draining ends when nothing reads or writes the application's buffers any more, here or from a peer,
// or after a bound.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "exec/program.hpp"
#include "exec/trace.hpp"
#include "hier/status.hpp"
#include "hier/transport.hpp"

namespace hier {

class Executor final : private Completions {
public:
    struct Limits {
        // Without movement while every peer is in the call; 0: never.
        std::chrono::seconds timeout{0};
        // For what is in flight after an error.
        std::chrono::seconds drain{5};
        // For work on the node to wait, at the start of a call, until the first rail peer is in it;
        // where this rank has something for it that does not come from the node itself.
        // Where ranks share cores, that work would keep others from entering the call and the
        // network from starting.
        std::chrono::microseconds rail_first{0};
        // Of work that the CPU does itself in one progress call.
        std::size_t bytes_per_pass = 256 << 10;
    };

    // `rail` may be null where the team has one node. Both outlive the executor.
    Executor(Transport* node, Transport* rail, Limits limits)
        : transports_{node, rail}, limits_(limits)
    {
    }

    // `program` must outlive the run. Nothing is allocated after the first run of a program this
    // size. `trace`, where given, gets the times of this run's ops and must outlive the run.
    Status start(const Program& program, const Binding& binding, Trace* trace = nullptr);
    // This rank cannot take part in the collective that comes next: tells the others.
    void refuse(Status status);
    // The caller knows that the running collective cannot end well: it fails. `is_dead`, by rank of the
    // team: its process has ended, and so have its writes inside the node; nobody waits for it there.
    void interrupt(const std::vector<bool>& is_dead);
    // ok when the collective is done; in_progress; or the error with which it ended.
    Status progress();
    // Did the last progress() change anything?
    bool moved() const { return moved_; }

private:
    using Clock = std::chrono::steady_clock;
    struct Cursor {
        std::size_t put = 0, await = 0, ready = 0;  // next in Program::Pair
    };

    void reset(const Program& program, Trace* trace);
    Transport* transport(Level level) const { return transports_[static_cast<std::size_t>(level)]; }
    Transfer transfer(std::uint32_t op) const;

    void started(std::uint32_t op) override;
    void complete(std::uint32_t op, Status status) override;
    void finish(std::uint32_t op);
    void run(std::uint32_t op);
    void take(std::uint32_t op, Status status);
    void fail(Status status);
    void raise(Status status);
    static void stop(Transport& transport);
    void advance();

    void progress_transports();
    static bool is_due(const Program::Pair& pair, const Cursor& cursor);
    Status is_in_call(Level level, const Program::Pair& pair, std::uint32_t op) const;
    void poll(Level level);
    void issue_rail();
    void work_on_node();
    bool may_work_on(const Op& op);
    void watch_clock();
    void pass_on_heartbeat(std::chrono::steady_clock::time_point now);
    void report_late() const;
    bool is_at_rest();
    bool may_be_written(Level level) const;
    void conclude();
    void report_stall() const;

    Transport* transports_[2];
    Limits limits_;
    const Program* program_ = nullptr;
    Trace* trace_ = nullptr;  // most calls have none
    Status status_ = Status::ok;
    Status failure_ = Status::ok;
    bool moved_ = false;
    bool rail_has_started_ = false;  // or need not be waited for
    std::uint32_t remaining_ = 0;
    std::uint32_t not_ready_ = 0;            // peers that are not yet in the call
    int in_flight_ = 0;                      // rail puts
    std::vector<std::uint32_t> pending_;     // dependencies left, by op
    std::vector<std::uint32_t> node_queue_;  // copies and node puts that may run
    std::size_t node_head_ = 0;
    std::vector<Cursor> cursors_[2];
    unsigned idle_passes_ = 0;
    Clock::time_point started_;
    Clock::time_point last_move_;  // or sign of life
    Clock::time_point last_heartbeat_;
    Clock::time_point last_look_;
    std::uint32_t heartbeat_ = 0;  // the highest that we have told
    bool late_reported_ = false;
    Clock::time_point drain_end_;
    bool has_stopped_[2] = {};   // the level's peers have been told
    std::vector<bool> is_dead_;  // by rank; empty: nobody is known to be
};

}  // namespace hier
