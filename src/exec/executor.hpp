// SPDX-License-Identifier: BSD-3-Clause
// Runs one plan at a time over two transports: a state machine that never waits inside.
//
//            start                    progress ... progress
//              |   announce, copies,     |   completions -> successors become runnable
//              |   waits armed, puts     |   signals polled -> waits end -> successors ...
//              v   that need no answer   v   rail puts (a window), node puts (a budget)
//           running ------------------------------------------> done
//              \------ an error here or at a peer -> draining -> failed
//
// The parts, all over one Run:
//
//     Executor   which operation runs when
//     Watchdog   is anything moving? Is a rank late?
//     Failure    the end after an error
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "exec/failure.hpp"
#include "exec/program.hpp"
#include "exec/run.hpp"
#include "exec/trace.hpp"
#include "exec/watchdog.hpp"
#include "hier/status.hpp"
#include "hier/transport.hpp"

namespace hier {

class Executor final : private Completions {
public:
    struct Limits {
        Watchdog::Limits watchdog{};
        // How long transfers in flight may take to end after an error.
        std::chrono::seconds drain{5};
        // At the start of a call the work on the node waits so long for the first rail peer to
        // enter. The work waits only where this rank has data for that peer that does not come from
        // the node. Where ranks share cores, the work would keep other ranks from entering the
        // call, and the network from starting.
        std::chrono::microseconds rail_first{0};
        // How much the CPU itself copies in one pass.
        std::size_t bytes_per_pass = 256 << 10;
        // For Transport::exchange.
        unsigned exchange_looks = 500;
    };

    // `rail` may be null where the team has one node. Both outlive the executor.
    Executor(Transport* node, Transport* rail, Limits limits)
        : limits_(limits), run_(node, rail), watchdog_(run_, limits.watchdog),
          failure_(run_, limits.drain)
    {
    }

    // `program` must outlive the run. Nothing is allocated after the first run of a program of this
    // size that did not end here. `trace`, where given, must outlive the run, and gets the times of
    // its ops. ok: the collective is done already.
    Status start(const Program& program, const Binding& binding, Trace* trace = nullptr);
    // The running collective begins anew, with another program. No operation has put or announced anything. Both
    // programs outlive the run.
    void start_again(const Program& program, const Binding& binding, Trace* trace = nullptr);
    // Tells the others that this rank cannot take part in the next collective. One that runs fails, too.
    void refuse(Status status);
    // Makes the running collective fail: the caller knows that it cannot end well. `is_dead`, by
    // rank of the team: the process of the rank has ended, and so have its writes inside the node.
    // Nobody waits for such a rank there.
    void interrupt(const std::vector<bool>& is_dead);
    // ok: the collective is done. in_progress. Or the error with which the collective has ended.
    Status progress();
    // Have operations ended in the last progress(), or bytes moved?
    bool moved() const { return run_.moved; }

private:
    void reset(const Program& program, Trace* trace);
    Status exchange(const Program& program, const Binding& binding);
    void begin(const Binding& binding);
    void end();

    void started(std::uint32_t op) override;
    void moved_bytes() override { run_.moved = true; }
    void complete(std::uint32_t op, Status status) override;
    void finish(std::uint32_t op);
    void run(std::uint32_t op);
    void take(std::uint32_t op, Status status);

    void advance();
    bool should_skip(Level level);
    void progress_transports();
    void poll(Level level);
    void issue_rail();
    void work_on_node();
    bool may_work_on(const Op& op);
    void conclude();
    Status settle();

    Limits limits_;
    Run run_;
    Watchdog watchdog_;
    Failure failure_;
    Trace* trace_ = nullptr;  // most calls have none
    Status status_ = Status::ok;
    unsigned idle_rail_passes_ = 0;
    bool rail_has_started_ = false;          // or nothing waits for its start
    std::vector<std::uint32_t> pending_;     // dependencies left, by op
    std::vector<std::uint32_t> node_queue_;  // copies and node puts that may run
    std::size_t node_head_ = 0;
};

}  // namespace hier
