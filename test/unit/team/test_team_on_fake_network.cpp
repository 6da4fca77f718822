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

// A call, and what is known of it when its listener is told.
struct Heard {
    Request* request = nullptr;
    const std::vector<std::byte>* receive = nullptr;
    int times = 0;
    bool was_running = false;
    std::byte last{};

    static void hear(void* context)
    {
        auto* const heard = static_cast<Heard*>(context);
        heard->times++;
        heard->was_running = heard->request->test() == Status::in_progress;
        heard->last = heard->receive->back();
    }
};

enum class Kept : bool { no, yes };

Status start_heard(FakeWorld& world, int rank, std::vector<std::byte>& send,
                   std::vector<std::byte>& receive, Heard& heard, Launch when, Kept kept = Kept::no)
{
    heard.receive = &receive;
    const hier::Call call{.collective = FakeWorld::allgather,
                          .bytes = send.size(),
                          .in_place = false,
                          .send = {send.data(), send.size(), {}},
                          .receive = {receive.data(), receive.size(), {}}};
    hier::Team& team = world.team(rank);
    if (kept == Kept::no) return team.start(call, heard.request, when, {Heard::hear, &heard});
    const Status status = team.prepare(call, heard.request);
    return status != Status::ok ? status : team.start(*heard.request, when, {Heard::hear, &heard});
}

std::string tell_listeners(Kept kept)
{
    FakeWorld world(2, 1);
    constexpr std::byte sent{7};
    std::vector<std::byte> send(20000, sent), receive[2];
    Heard heard[2];
    for (int r = 0; r < 2; r++) {
        receive[r].resize(2 * send.size());
        if (start_heard(world, r, send, receive[r], heard[r], world.now_or_later(), kept) !=
            Status::in_progress)
            return "not started";
    }
    for (int i = 0; i < 100000 && world.team(0).is_running() + world.team(1).is_running() > 0; i++)
        for (int r = 0; r < 2; r++) (void)world.team(r).progress();
    for (const Heard& h : heard) {
        if (h.times != 1) return "a listener was told " + std::to_string(h.times) + " times";
        if (!h.was_running) return "the request told of the end before the listener did";
        if (h.last != sent) return "a listener was told before the bytes were there";
        if (h.request->test() != Status::ok) return "a call has not ended well";
    }
    // The next call with the same buffers has no listener.
    for (int r = 0; r < 2; r++) {
        if (kept == Kept::no)
            world.start(r, FakeWorld::allgather, send, receive[r], Launch::now);
        else if (world.team(r).start(*heard[r].request) != Status::in_progress)
            return "not started again";
    }
    world.run();
    if (heard[0].times + heard[1].times != 2) return "a listener was told of another call";
    return world.fault();
}

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

void test_a_listener_hears_of_the_end(void**) { expect_no_reason(keep(tell_listeners(Kept::no))); }

void test_a_listener_hears_of_a_kept_request(void**)
{
    expect_no_reason(keep(tell_listeners(Kept::yes)));
}

std::string interrupt_before_the_launch()
{
    FakeWorld world(2, 1);
    std::vector<std::byte> send(20000), recv[2];
    Heard heard[2];
    for (int r = 0; r < 2; r++) {
        recv[r].resize(2 * send.size());
        if (start_heard(world, r, send, recv[r], heard[r], Launch::later) != Status::in_progress)
            return "not started";
    }
    world.team(0).interrupt({false, false});
    for (int i = 0; i < 1000; i++) {
        for (int r = 0; r < 2; r++) (void)world.team(r).progress();
    }
    for (const Heard& h : heard) {
        if (h.request->test() != Status::peer_failed) return "a rank has not heard of the failure";
        if (h.times != 0) return "a listener was told of a call that has failed";
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
        cmocka_unit_test(test_a_listener_hears_of_the_end),
        cmocka_unit_test(test_a_listener_hears_of_a_kept_request),
        cmocka_unit_test(test_a_call_is_interrupted_before_its_launch),
        cmocka_unit_test(test_the_team_names_its_network),
    };
    return hier::test::run_cases(argc, argv, "team_on_fake_network", tests);
}
