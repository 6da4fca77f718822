// SPDX-License-Identifier: BSD-3-Clause
// The simulated HIP runtime does what it promises. This program is linked with the real library,
// like the programs that the runtime is made for. At its start it finds the simulated library
// first.
#include "checks.hpp"

#include "test/support/cmocka.hpp"

using namespace hip_sim::test;

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_hidden_memory),
        cmocka_unit_test(test_memory_that_the_cpu_can_reach),
        cmocka_unit_test(test_memory_behind_a_large_bar),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_unknown_memory),
        cmocka_unit_test(test_an_address_that_comes_back),
        cmocka_unit_test(test_copies_of_rows),
        cmocka_unit_test(test_kinds_of_copies),
        cmocka_unit_test(test_copies_without_compute_units),
        cmocka_unit_test(test_copies_out_of_bounds),
        cmocka_unit_test(test_registered_memory),
        cmocka_unit_test(test_memory_of_a_pool),
        cmocka_unit_test(test_copies_are_asynchronous),
        cmocka_unit_test(test_pageable_memory),
        cmocka_unit_test(test_half_a_copy_is_seen),
        cmocka_unit_test(test_streams_wait_for_events),
        cmocka_unit_test(test_the_null_stream),
        cmocka_unit_test(test_stream_writes),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_free_waits_for_copies),
        cmocka_unit_test(test_handles_that_are_none),
        cmocka_unit_test(test_ipc),
        cmocka_unit_test(test_ipc_of_memory_that_was_freed),
        cmocka_unit_test(test_ipc_refusals),
        cmocka_unit_test(test_mapped_segments),
        cmocka_unit_test(test_shared_segments),
        cmocka_unit_test(test_what_has_no_handle),
        cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_failing_rank),
        cmocka_unit_test(test_failing_copy),
        cmocka_unit_test(test_hanging_copy),
        cmocka_unit_test(test_last_error),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_nothing_before_the_first_use),
        cmocka_unit_test(test_what_is_not_simulated),
    };
    return hier::test::run_cases(argc, argv, "sim", tests);
}
