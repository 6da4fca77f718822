// SPDX-License-Identifier: BSD-3-Clause
// The executor over a fake network, with any order of events, any delays, and passes in which
// nothing happens. Every rank gets every byte, and no rule of the Transport interface is broken.
#include <string>

#include "test/support/machine.hpp"
#include "test/support/simulation.hpp"
#include "test/support/wrapped/clock.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

std::string fault_of(const Scenario& scenario)
{
    const Outcome out = simulate(scenario);
    std::string fault = out.fault;
    for (std::size_t r = 0; r < out.status.size() && fault.empty(); r++) {
        if (out.status[r] != Status::ok || out.calls_done[r] != scenario.calls)
            fault = "rank " + std::to_string(r) + " ended with " + hier::to_string(out.status[r]);
    }
    return fault.empty() ? "" : fault + "; " + text_of(scenario);
}

// Some windows and budgets are too small for the call, others are not.
std::string fault_with_limits(Scenario scenario)
{
    const auto seed = scenario.weather.seed;
    scenario.depth = seed % 2 == 0 ? 1 : 4;
    scenario.limits.bytes_per_pass = seed % 3 == 0 ? 1 : 256 << 10;
    scenario.weather.immediate = seed % 5 == 0 ? 100 : static_cast<int>(seed % 5) * 20;
    scenario.weather.idle = seed % 4 == 0 ? 90 : 20;
    if (seed % 3 != 0) scenario.publish = seed % 3 == 1 ? Publish::all : Publish::some;
    return fault_of(scenario);
}

const char* all_machines_gather()
{
    std::uint64_t seed = 0;
    for (int ranks = 1; ranks <= 6; ranks++) {
        for (const auto& nodes : every_machine(ranks)) {
            for (const Route route : all_routes) {
                Scenario scenario{.nodes = nodes, .route = route};
                scenario.weather.seed = ++seed;
                const auto fault = fault_with_limits(scenario);
                if (!fault.empty()) return keep(fault);
            }
        }
    }
    return nullptr;
}

void test_all_machines(void**) { expect_no_reason(all_machines_gather()); }

const char* all_seeds_gather()
{
    for (const char* text : {"3", "1,1,1", "2,2", "3,1", "2,3,1", "4,1,2"}) {
        for (std::uint64_t seed = 1; seed <= 40; seed++) {
            Scenario scenario{.nodes = machine(text),
                              .route = seed % 2 == 0 ? Route::direct : Route::ring};
            scenario.weather.seed = 1000 + seed;
            const auto fault = fault_with_limits(scenario);
            if (!fault.empty()) return keep(fault);
        }
    }
    return nullptr;
}

void test_all_seeds(void**) { expect_no_reason(all_seeds_gather()); }

// A shard has less than one chunk, exactly one, or many.
const char* all_sizes_gather()
{
    for (const std::size_t bytes : {1u, 2u, 3u, 4u, 64u}) {
        for (const std::size_t chunk : {1u, 3u, 100u}) {
            Scenario scenario{.nodes = machine("3,2"), .bytes = bytes, .chunk = chunk};
            scenario.calls = 5;
            const auto fault = fault_of(scenario);
            if (!fault.empty()) return keep(fault);
        }
    }
    return nullptr;
}

void test_all_sizes(void**) { expect_no_reason(all_sizes_gather()); }

// The networks of some or all ranks reach only a bounce buffer. Above none did.
const char* bounces_gather()
{
    std::uint64_t seed = 5000;
    for (const char* text : {"1", "3", "1,1", "1,1,1", "2,2", "3,1", "2,3,1", "4,1,2"}) {
        for (const Route route : all_routes) {
            for (const Bounce bounce : {Bounce::some, Bounce::all}) {
                for (int i = 0; i < 30; i++) {
                    Scenario scenario{.nodes = machine(text), .route = route};
                    scenario.bounce = bounce;
                    scenario.calls = 5;
                    scenario.weather.seed = ++seed;
                    const auto fault = fault_with_limits(scenario);
                    if (!fault.empty()) return keep(fault);
                }
            }
        }
    }
    return nullptr;
}

void test_bounces(void**) { expect_no_reason(bounces_gather()); }

// A plan may let any op follow any other one, also an op that is done at once. The copy must run
// once.
const char* a_copy_after_an_announcement_runs_once()
{
    const Topology topology(machine("2"));
    Plan plan;
    plan.ops.resize(2);
    plan.ops[0] = {Op::Kind::announce,
                   Level::node,
                   Place::receive,
                   Place::receive,
                   Op::every_peer,
                   0,
                   {},
                   0,
                   0};
    plan.ops[1] = {Op::Kind::copy, Level::node, Place::send, Place::receive, 0, 0, {0, 0, 4}, 0, 1};
    plan.dependencies = {0};
    const Program program(plan, topology, 0);

    FakeNetwork network({.immediate = 0, .idle = 0}, std::nullopt);
    FakeGroup group(2);
    FakeTransport node(network, group, Level::node, 0, 0);
    Executor executor(&node, nullptr, {});
    std::byte send[4]{std::byte{1}}, receive[8]{};
    Status status = executor.start(program, {1, {send, 4}, {receive, 8}});
    for (int pass = 0; pass < 100 && status == Status::in_progress; pass++)
        status = executor.progress();
    if (status != Status::ok) return "it does not end";
    if (!network.fault().empty()) return keep(network.fault());
    return receive[0] == std::byte{1} ? nullptr : "nothing was copied";
}

void test_dependency_on_an_op_done_at_once(void**)
{
    expect_no_reason(a_copy_after_an_announcement_runs_once());
}

// The first program waits for a peer that never comes. The second one takes its place.
const char* a_call_begins_anew()
{
    const Topology topology(machine("2"));
    Plan waits, copies;
    Op op{};
    op.kind = Op::Kind::await_announced;
    op.level = Level::node;
    op.peer = 1;
    waits.append(op);
    op.kind = Op::Kind::copy;
    op.from = Place::send;
    op.to = Place::receive;
    op.peer = 0;
    op.slice = {0, 0, 4};
    copies.append(op);
    const Program first(std::move(waits), topology, 0), second(std::move(copies), topology, 0);

    FakeNetwork network({.immediate = 0, .idle = 0}, std::nullopt);
    FakeGroup group(2);
    FakeTransport node(network, group, Level::node, 0, 0);
    Executor executor(&node, nullptr, {});
    std::byte send[4]{std::byte{1}}, receive[8]{};
    const Binding binding{1, {send, 4}, {receive, 8}};
    Status status = executor.start(first, binding);
    for (int pass = 0; pass < 10; pass++) status = executor.progress();
    if (status != Status::in_progress) return "the first program does not wait";
    executor.start_again(second, binding);
    for (int pass = 0; pass < 100 && status == Status::in_progress; pass++)
        status = executor.progress();
    if (status != Status::ok) return "it does not end";
    if (!network.fault().empty()) return keep(network.fault());
    return receive[0] == std::byte{1} ? nullptr : "nothing was copied";
}

void test_a_call_that_begins_anew(void**) { expect_no_reason(a_call_begins_anew()); }

// Such a rank waits for its node alone. Where ranks share cores, each look at the network costs the
// others time. It still hears of a failure there.
const char* a_rank_without_rail_work_looks_seldom()
{
    constexpr std::size_t passes = 320;
    FakeNetwork network({}, std::nullopt);
    FakeGroup node_group(2), rail_group(2);
    FakeTransport node(network, node_group, Level::node, 0, 0);
    FakeTransport rail(network, rail_group, Level::rail, 0, 0);
    Plan plan;
    Op op{};
    op.kind = Op::Kind::await_announced;
    op.level = Level::node;
    op.peer = 1;
    plan.append(op);
    const Program program(std::move(plan), Topology(machine("2,2")), 0);
    Executor executor(&node, &rail, {});
    (void)executor.start(program, {.sequence = 1, .send = {}, .receive = {}});
    for (std::size_t i = 0; i < passes; i++) (void)executor.progress();
    if (node.passes != passes) return "it does not look at its node in every pass";
    if (rail.passes == 0 || rail.passes > passes / 10) return "it looks at its rail too often";
    rail_group.failure = Status::transport_error;
    for (std::size_t i = 0; i < passes; i++) (void)executor.progress();
    return node_group.failure == Status::ok ? "it does not see a failure on its rail" : nullptr;
}

void test_rank_without_rail_work(void**)
{
    expect_no_reason(a_rank_without_rail_work_looks_seldom());
}

struct Sender : FakeTransport {
    using FakeTransport::FakeTransport;
    Status put(const Transfer&) override
    {
        puts++;
        return Status::ok;
    }
    std::size_t puts = 0;
};

// Its peer waits for it, and a look at the network takes time.
const char* a_message_goes_out_before_a_look()
{
    FakeNetwork network({}, std::nullopt);
    FakeGroup rail_group(2);
    Sender rail(network, rail_group, Level::rail, 0, 0);
    Plan plan;
    plan.depth = 1;
    Op op{};
    op.kind = Op::Kind::put;
    op.level = Level::rail;
    op.peer = 1;
    op.slice = {0, 0, 4};
    plan.append(op);
    const Program program(std::move(plan), Topology(machine("1,1")), 0);
    Executor executor(nullptr, &rail, {});
    std::byte send[4]{}, receive[8]{};
    (void)executor.start(
        program, {.sequence = 1, .send = {send, 4}, .receive = {receive, 8}, .eager = true});
    if (rail.puts != 1) return "it has not started";
    return rail.passes == 0 ? nullptr : "it looks first";
}

void test_messages_go_out_first(void**) { expect_no_reason(a_message_goes_out_before_a_look()); }

}  // namespace

int main(int argc, char** argv)
{
    hier::test::use_clock(hier::test::ClockMode::fake);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_all_machines),
        cmocka_unit_test(test_all_seeds),
        cmocka_unit_test(test_all_sizes),
        cmocka_unit_test(test_bounces),
        cmocka_unit_test(test_dependency_on_an_op_done_at_once),
        cmocka_unit_test(test_a_call_that_begins_anew),
        cmocka_unit_test(test_rank_without_rail_work),
        cmocka_unit_test(test_messages_go_out_first),
    };
    return hier::test::run_cases(argc, argv, "executor", tests);
}
