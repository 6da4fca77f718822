// SPDX-License-Identifier: BSD-3-Clause
// A team whose network is a fake one, and a collective that only tests have. Nothing below src/coll
// knows either of them.
#include <cmath>
#include <string>
#include <vector>

#include "test/support/fake_world.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

void test_allgathers(void**)
{
    expect_no_reason(keep(fault_over_worlds([](FakeCalls& calls, FakeWorld& world) {
        for (const std::size_t bytes : {1U, 100U, 16384U, 70001U, 8U}) {
            calls.start_allgather(bytes);
            world.run();
        }
    })));
}

void test_a_broadcast(void**)
{
    expect_no_reason(keep(fault_over_worlds([](FakeCalls& calls, FakeWorld& world) {
        calls.start_broadcast();
        world.run();
        calls.start_broadcast();
    })));
}

// A registration serves one call: other calls of the network may have replaced it since.
std::string count_registrations()
{
    constexpr int ranks = 2, calls = 3;
    FakeWorld world(ranks, 1);
    std::vector<std::byte> send[ranks], recv[ranks];
    const std::size_t before = FakeTransport::registrations;
    for (int call = 0; call < calls && world.fault().empty(); call++) {
        for (int r = 0; r < ranks; r++) {
            send[r].resize(20000);
            recv[r].resize(ranks * send[r].size());
            world.start(r, FakeWorld::allgather, send[r], recv[r], world.now_or_later());
        }
        world.run();
    }
    if (!world.fault().empty()) return world.fault();
    const std::size_t made = FakeTransport::registrations - before;
    return made == std::size_t{ranks * calls} ? "" : std::to_string(made) + " registrations";
}

void test_the_same_buffers_are_registered_in_each_call(void**)
{
    expect_no_reason(keep(count_registrations()));
}

std::string launch_later()
{
    FakeWorld world(2, 1);
    std::vector<std::byte> send[2], recv[2];
    const std::size_t before = FakeTransport::registrations;
    for (int r = 0; r < 2; r++) {
        send[r].resize(20000);
        recv[r].resize(2 * send[r].size());
        world.start(r, FakeWorld::allgather, send[r], recv[r], Launch::later);
    }
    if (FakeTransport::registrations != before) return "the start has launched the call";
    world.run();
    return world.fault();
}

void test_a_call_is_launched_later(void**) { expect_no_reason(keep(launch_later())); }

// All ranks are nodes, with a NIC each.
void test_the_network_needs_time_for_each_block(void**)
{
    const FakeWorld world(4, 1);
    const double one = world.team(0).network_time(1000);
    assert_true(one > 0);
    assert_true(std::abs(world.team(3).network_time(8000) - 8 * one) < one / 1000);
    const FakeWorld small(2, 1);
    assert_true(std::abs(one - 3 * small.team(1).network_time(1000)) < one / 1000);
}

std::string interrupt_before_the_launch()
{
    FakeWorld world(2, 1);
    std::vector<std::byte> send(20000), recv[2];
    Request* requests[2];
    for (int r = 0; r < 2; r++) {
        recv[r].resize(2 * send.size());
        const hier::Call call{.collective = FakeWorld::allgather,
                              .bytes = send.size(),
                              .in_place = false,
                              .send = {send.data(), send.size(), {}},
                              .receive = {recv[r].data(), recv[r].size(), {}}};
        if (world.team(r).start(call, requests[r], Launch::later) != Status::in_progress)
            return "not started";
    }
    world.team(0).interrupt({false, false});
    for (int i = 0; i < 1000; i++) {
        for (int r = 0; r < 2; r++) (void)world.team(r).progress();
    }
    for (Request* request : requests) {
        if (request->test() != Status::peer_failed) return "a rank has not heard of the failure";
    }
    return "";
}

void test_a_call_is_interrupted_before_its_launch(void**)
{
    expect_no_reason(keep(interrupt_before_the_launch()));
}

std::string describe_team()
{
    const FakeWorld world(2, 1);
    if (!world.fault().empty()) return world.fault();
    const std::string& text = world.team(0).description();
    const bool is_named = text.find("a fake network between nodes") != std::string::npos;
    return is_named ? "" : text;
}

void test_the_team_names_its_network(void**) { expect_no_reason(keep(describe_team())); }

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_allgathers),
        cmocka_unit_test(test_a_broadcast),
        cmocka_unit_test(test_the_same_buffers_are_registered_in_each_call),
        cmocka_unit_test(test_a_call_is_launched_later),
        cmocka_unit_test(test_the_network_needs_time_for_each_block),
        cmocka_unit_test(test_a_call_is_interrupted_before_its_launch),
        cmocka_unit_test(test_the_team_names_its_network),
    };
    return hier::test::run_cases(argc, argv, "team_on_fake_network", tests);
}
