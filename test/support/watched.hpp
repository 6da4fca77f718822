// SPDX-License-Identifier: BSD-3-Clause
// The watchdog alone: a run that the test stops by hand, and a clock that the test moves on.
#pragma once

#include <string>
#include <vector>

#include "base/log.hpp"
#include "exec/watchdog.hpp"
#include "fake_network.hpp"
#include "machine.hpp"
#include "wrapped/clock.hpp"

namespace hier::test {

using namespace std::chrono_literals;

inline constexpr auto timeout = 8s;
inline constexpr auto period = 1s;  // of the heartbeat

inline std::vector<std::string> lines;
inline void collect(int, const char* line) { lines.emplace_back(line); }

// Rank 0 of two nodes waits for rank 1 to enter, and then for two of its chunks. It puts one.
inline Plan waiting_plan()
{
    Plan plan;
    Op op{};
    op.level = Level::rail;
    op.peer = 1;
    op.kind = Op::Kind::await_announced;
    plan.append(op);
    op.kind = Op::Kind::await_data;
    for (op.count = 1; op.count <= 2; op.count++) plan.append(op);
    op.kind = Op::Kind::put;
    op.count = 1;
    plan.append(op);
    return plan;
}

class Watched {
public:
    explicit Watched(bool fails = false)
        : program_(waiting_plan(), Topology(machine("1,1")), 0),
          watchdog_(run, Watchdog::Limits{.timeout = timeout, .fails = fails})
    {
        lines.clear();
        (void)rail_.begin({.sequence = 1, .send = {}, .receive = {}});
        run.begin(program_);
        watchdog_.begin();
    }

    void peer_enters()
    {
        run.cursors_of(Level::rail)[0].ready = 1;
        run.not_ready = 0;
    }
    void hear(std::uint32_t heartbeat) { group_.heartbeats[1] = Signal::encode(1, heartbeat); }
    void get_a_part() { rail_.parts_have_come = true; }
    std::uint32_t told() const { return Signal::count(group_.heartbeats[0], 1); }

    // Passes for so long, one each millisecond, or until the watchdog has an answer.
    Status pass(std::chrono::milliseconds time)
    {
        Status status = Status::ok;
        for (auto left = time; left > 0ms && status == Status::ok; left -= 1ms) {
            fake_now += 1ms;
            status = watchdog_.look();
        }
        return status;
    }
    void move_once()
    {
        run.moved = true;
        (void)pass(1ms);
        run.moved = false;
    }
    // The next call of the same team.
    void begin_again()
    {
        run.begin(program_);
        watchdog_.begin();
        peer_enters();
    }

private:
    FakeNetwork network_{{}, std::nullopt};
    FakeGroup group_{2};
    FakeTransport rail_{network_, group_, Level::rail, 0, 0};
    Program program_;

public:
    Run run{nullptr, &rail_};

private:
    Watchdog watchdog_;
};

}  // namespace hier::test
