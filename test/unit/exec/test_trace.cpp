// SPDX-License-Identifier: BSD-3-Clause
// Exact times of one rank's ops, with a clock and a peer in the test's hand, and the file that
// holds them.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "exec/executor.hpp"
#include "exec/tracer.hpp"
#include "test/support/fake_network.hpp"
#include "test/support/machine.hpp"
#include "test/support/wrapped/clock.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;
using std::chrono::microseconds;

enum : std::uint32_t { announce, ready, put, first, second, copy, ops };

// Rank 0 of a node of two. It puts when the peer is ready, then copies, and waits for two arrivals.
Plan tiny_plan()
{
    Plan plan;
    plan.ops.resize(ops);
    for (Op& op : plan.ops) {
        op.level = Level::node;
        op.peer = 1;
    }
    plan.ops[announce].kind = Op::Kind::announce;
    plan.ops[announce].peer = Op::every_peer;
    plan.ops[ready].kind = Op::Kind::await_announced;
    plan.ops[put] = {
        Op::Kind::put, Level::node, Place::send, Place::receive, 1, 1, {0, 0, 4}, 0, 1};
    plan.ops[first].kind = plan.ops[second].kind = Op::Kind::await_data;
    plan.ops[first].count = 1;
    plan.ops[second].count = 2;
    plan.ops[copy] = {
        Op::Kind::copy, Level::node, Place::send, Place::receive, 0, 0, {0, 0, 4}, 1, 1};
    plan.dependencies = {ready, put};
    return plan;
}

std::string text_of(const Trace::Times& times, std::int64_t begin)
{
    const auto us = [&](std::int64_t t) {
        return t == 0 ? std::string("-") : std::to_string((t - begin) / 1000);
    };
    return us(times.runnable) + " " + us(times.started) + " " + us(times.ended);
}

class TinyRank {
public:
    TinyRank() : program_(tiny_plan(), Topology(machine("2")), 0) {}

    const Program& program() const { return program_; }
    const std::string& fault() const { return network_.fault(); }
    microseconds put_done{0}, copy_done{0};

    // The peer announces at 20 us, and its puts arrive at 50 us and at 70 us.
    Status run(std::uint64_t sequence, Trace* trace)
    {
        send_[0] = std::byte{1};
        receive_[0] = std::byte{0};
        const auto start = fake_now;
        Status status = executor_.start(program_, {sequence, {send_, 4}, {receive_, 8}}, trace);
        for (int pass = 1; pass < 100 && status == Status::in_progress; pass++) {
            fake_now = start + microseconds(10 * pass);
            auto& to_peer = group_.lanes[1][0];
            if (pass == 2) to_peer.announced = {sequence, {peer_, 8}};
            if (pass == 5 || pass == 7)
                group_.lanes[0][1].signal = Signal::encode(sequence, pass == 5 ? 1 : 2);
            status = executor_.progress();
            const auto now = std::chrono::duration_cast<microseconds>(fake_now - start);
            if (put_done.count() == 0 && !to_peer.arriving.empty()) put_done = now;
            if (copy_done.count() == 0 && receive_[0] == std::byte{1}) copy_done = now;
        }
        return status;
    }

private:
    Program program_;
    // Transfers are under way for some passes.
    FakeNetwork network_{{.immediate = 0, .idle = 50}, std::nullopt};
    FakeGroup group_{2};
    FakeTransport node_{network_, group_, Level::node, 0, 0};
    Executor executor_{&node_, nullptr, {}};
    std::byte send_[4]{}, receive_[8]{}, peer_[8]{};
};

std::string fault_of_times(const Trace& trace, const TinyRank& rank)
{
    const std::string put_at = std::to_string(rank.put_done.count());
    const std::string copy_at = std::to_string(rank.copy_done.count());
    const std::string expected[ops] = {"0 0 0",  "0 0 20",   "20 20 " + put_at,
                                       "0 0 50", "50 50 70", put_at + " " + put_at + " " + copy_at};
    for (std::uint32_t i = 0; i < ops; i++) {
        const std::string found = text_of(trace.times()[i], trace.begin_time());
        if (found != expected[i])
            return "op " + std::to_string(i) + ": " + found + ", not " + expected[i];
    }
    return "";
}

const char* times_are_exact()
{
    TinyRank rank;
    Trace trace;
    trace.reserve(ops);
    if (rank.run(1, &trace) != Status::ok) return "the run does not end well";
    trace.end(rank.program());
    if (!rank.fault().empty()) return keep(rank.fault());
    if (rank.put_done <= microseconds(20) || rank.copy_done <= rank.put_done)
        return "nothing was under way for a while";
    return keep(fault_of_times(trace, rank));
}

void test_times_are_exact(void**) { expect_no_reason(times_are_exact()); }

const char* an_untraced_run_records_nothing()
{
    TinyRank rank;
    Trace trace;
    trace.reserve(ops);
    const auto* memory = trace.times().data();
    if (rank.run(1, &trace) != Status::ok) return "the run does not end well";
    trace.end(rank.program());
    const std::int64_t end = trace.end_time();
    if (rank.run(2, nullptr) != Status::ok) return "the second run does not end well";
    if (trace.times().data() != memory) return "memory was taken in a run";
    return trace.end_time() == end ? keep(fault_of_times(trace, rank)) : "another end";
}

void test_untraced(void**) { expect_no_reason(an_untraced_run_records_nothing()); }

// ---- files

int errors = 0;
void count_errors(int level, const char*) { errors += level == HIER_LOG_ERROR ? 1 : 0; }

Tracer::Setting setting(const std::string& prefix, std::uint64_t call)
{
    return {.prefix = prefix, .team = "A B/c", .rank = 3, .call = call, .header = "# fixed,1\n"};
}

std::string contents(const std::string& path)
{
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

const char* a_file_holds_the_times()
{
    char directory[] = "/tmp/hier-trace-XXXXXX";
    if (mkdtemp(directory) == nullptr) return "no directory";
    const std::string path = std::string(directory) + "/A_B_c.3.2.csv";
    TinyRank rank;
    std::string fault;
    {
        Tracer tracer(setting(directory, 2));
        if (tracer.wants(1) || !tracer.wants(2) || tracer.wants(3)) fault = "not call 2 alone";
        Trace* trace = tracer.begin(2, rank.program(), "# call's,7\n");
        if (rank.run(1, trace) != Status::ok) fault = "the run does not end well";
        tracer.end(Status::ok);
        if (access(path.c_str(), F_OK) == 0) fault = "a file before the next call";
    }
    const std::string text = contents(path);
    unlink(path.c_str());
    rmdir(directory);
    const std::string put_at = std::to_string(rank.put_done.count() * 1000);
    for (const std::string& line :
         {std::string("# hier trace,1\n# fixed,1\n# call's,7\n# call,2\n# status,"),
          std::string("op,kind,level,peer,from,to,count,offset,bytes,runnable_ns,started_ns,"
                      "ended_ns\n0,announce,node,-1,,,0,0,0,0,0,0\n"),
          "\n2,put,node,1,send,,1,0,4,20000,20000," + put_at + "\n",
          std::string("\n4,await_data,node,1,,,2,0,0,50000,50000,70000\n")}) {
        if (text.find(line) == std::string::npos) fault = "no '" + line + "' in " + text;
    }
    return keep(fault);
}

void test_file(void**) { expect_no_reason(a_file_holds_the_times()); }

void test_path(void**)
{
    assert_string_equal(trace_path("/tmp", "MPI_COMM_WORLD", 0, 10).c_str(),
                        "/tmp/MPI_COMM_WORLD.0.10.csv");
    assert_string_equal(trace_path("/tmp/x", "a/../b c", 12, 1).c_str(),
                        "/tmp/x.a____b_c.12.1.csv");
}

// The log has one line, and nobody tries again.
const char* an_unwritable_place_is_said_once()
{
    set_log(HIER_LOG_INFO, count_errors);
    for (const bool complains : {true, false}) {
        errors = 0;
        TinyRank rank;
        auto nowhere = setting("/nonexistent/x", 0);
        nowhere.complains = complains;
        Tracer tracer(nowhere);
        if (rank.run(1, tracer.begin(1, rank.program(), "")) != Status::ok) return "run 1";
        tracer.end(Status::ok);
        tracer.write();
        if (tracer.begin(2, rank.program(), "") != nullptr) return "it goes on tracing";
        if (rank.run(2, nullptr) != Status::ok) return "run 2";
        tracer.end(Status::ok);
        tracer.write();
        if (errors != (complains ? 1 : 0)) return "not said once";
    }
    set_log(HIER_LOG_ERROR, nullptr);
    return nullptr;
}

std::string last_error;
void keep_error(int, const char* line) { last_error = line; }

// Whoever may write to the directory knows the name of the next file.
const char* another_file_of_the_name_is_left_alone()
{
    char directory[] = "/tmp/hier-trace-XXXXXX";
    if (mkdtemp(directory) == nullptr) return "no directory";
    const std::string path = std::string(directory) + "/A_B_c.3.1.csv";
    const std::string other = std::string(directory) + "/other";
    std::ofstream(other) << "precious";
    std::string fault;
    for (const bool is_link : {false, true}) {
        if (is_link ? symlink(other.c_str(), path.c_str()) != 0
                    : link(other.c_str(), path.c_str()) != 0)
            return "no link";
        set_log(HIER_LOG_ERROR, keep_error);
        last_error.clear();
        TinyRank rank;
        Tracer tracer(setting(directory, 1));
        if (rank.run(1, tracer.begin(1, rank.program(), "")) != Status::ok) fault = "run";
        tracer.end(Status::ok);
        tracer.write();
        set_log(HIER_LOG_ERROR, nullptr);
        if (contents(other) != "precious") fault = "it is overwritten";
        if (last_error.find("File exists") == std::string::npos) fault = "no cause: " + last_error;
        unlink(path.c_str());
    }
    unlink(other.c_str());
    rmdir(directory);
    return keep(fault);
}

void test_existing_file(void**) { expect_no_reason(another_file_of_the_name_is_left_alone()); }

// A header names the ranks of every node.
void test_long_line(void**)
{
    const std::string nodes(5000, '8');
    const std::string line = format("# ranks_on_nodes,%s\n", nodes.c_str());
    assert_true(line == "# ranks_on_nodes," + nodes + "\n");
}

void test_unwritable(void**) { expect_no_reason(an_unwritable_place_is_said_once()); }

}  // namespace

int main(int argc, char** argv)
{
    hier::test::use_clock(hier::test::ClockMode::fake);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_times_are_exact),
        cmocka_unit_test(test_untraced),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_unwritable),
        cmocka_unit_test(test_existing_file),
    };
    return hier::test::run_cases(argc, argv, "trace", tests);
}
