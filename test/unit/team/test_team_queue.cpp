// SPDX-License-Identifier: BSD-3-Clause
// Several calls of a team at a time. The team runs them one after the other.
#include "test/support/fake_world.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier::test;

// All are started before anybody asks for the status of the first one.
void test_calls_wait_in_a_queue(void**)
{
    expect_no_reason(keep(fault_over_worlds([](FakeCalls& calls, FakeWorld&) {
        for (const std::size_t bytes : {40000U, 3U, 70001U, 100U}) calls.start_allgather(bytes);
    })));
}

void test_two_collectives_alternate(void**)
{
    expect_no_reason(keep(fault_over_worlds([](FakeCalls& calls, FakeWorld& world) {
        calls.start_allgather(5000);
        calls.start_broadcast();
        calls.start_allgather(40000);
        calls.start_broadcast();
        world.run();
        calls.start_broadcast();
        calls.start_allgather(17);
    })));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_wait_in_a_queue),
        cmocka_unit_test(test_two_collectives_alternate),
    };
    return hier::test::run_cases(argc, argv, "team_queue", tests);
}
