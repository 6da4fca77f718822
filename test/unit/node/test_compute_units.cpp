// SPDX-License-Identifier: BSD-3-Clause
// Which calls go without kernels after a kernel that was late. Each case has a device of its own.
#include <thread>

#include "node/device/compute_units.hpp"

#include "test/support/cmocka.hpp"

namespace {

using hier::ComputeUnits;
using User = hier::ComputeUnits::User;
using namespace std::chrono_literals;

void run_late(int device)
{
    ComputeUnits::Kernel kernel;
    kernel.begin(device, User::exchange, 0s);
    kernel.look();
    kernel.look();  // counts once
    kernel.end();
}

void run_in_time(int device)
{
    ComputeUnits::Kernel kernel;
    kernel.begin(device, User::exchange, 1h);
    kernel.look();
    kernel.end();
}

int calls_without(int device)
{
    int calls = 0;
    while (!ComputeUnits::of(device).are_free(User::exchange)) calls++;
    return calls;
}

void test_twice_as_many_each_time(void**)
{
    ComputeUnits::watch_kernels(true);
    assert_int_equal(calls_without(1), 0);
    for (const int expected : {20, 40, 80, 160, 320, 640, 640}) {
        run_late(1);
        assert_int_equal(calls_without(1), expected);
        assert_true(ComputeUnits::of(1).are_free(User::exchange));
    }
    assert_true(ComputeUnits::of(2).are_free(User::exchange));
    assert_true(ComputeUnits::of(1).are_free(User::fan_out));
}

// Each kernel in time takes a 64th from what the next late one costs, or one if that is more.
void test_a_kernel_in_time(void**)
{
    ComputeUnits::watch_kernels(true);
    run_in_time(3);
    run_late(3);
    run_late(3);
    for (int i = 0; i < 7; i++) assert_false(ComputeUnits::of(3).are_free(User::exchange));
    run_in_time(3);
    assert_true(ComputeUnits::of(3).are_free(User::exchange));
    run_late(3);
    assert_int_equal(calls_without(3), 79);
    for (int i = 0; i < 200; i++) run_in_time(3);
    run_late(3);
    assert_int_equal(calls_without(3), 20);
    for (int i = 0; i < 5; i++) run_late(3);
    for (int i = 0; i < 2; i++) run_in_time(3);
    run_late(3);
    assert_int_equal(calls_without(3), 640 - 10 - 9);
}

// Nobody looked while it may have been late: the application may have come back late. So it says nothing.
void test_a_late_look(void**)
{
    ComputeUnits::watch_kernels(true);
    ComputeUnits::Kernel kernel;
    kernel.begin(4, User::exchange, 0s);
    kernel.end();
    assert_true(ComputeUnits::of(4).are_free(User::exchange));
    run_late(4);
    kernel.begin(4, User::exchange, 0s);
    kernel.end();
    assert_int_equal(calls_without(4), 20);
}

// The other kind of kernels may still be in time. But if one is late, too, that costs as much.
void test_two_kinds_of_kernels(void**)
{
    ComputeUnits::watch_kernels(true);
    for (int i = 0; i < 3; i++) run_late(7);
    ComputeUnits& units = ComputeUnits::of(7);
    assert_false(units.are_free(User::exchange));
    assert_true(units.are_free(User::fan_out));
    ComputeUnits::Kernel kernel;
    kernel.begin(7, User::fan_out, 0s);
    kernel.look();
    int blocks = 0;
    while (!units.are_free(User::fan_out)) blocks++;
    assert_int_equal(blocks, 160);
}

// It waits for another kernel of hier before it.
void test_a_kernel_behind_another(void**)
{
    ComputeUnits::watch_kernels(true);
    ComputeUnits::Kernel kernel;
    kernel.begin(5, User::exchange, 1s);
    std::this_thread::sleep_for(1100ms);
    kernel.begin_again();
    kernel.look();
    assert_true(ComputeUnits::of(5).are_free(User::exchange));
}

void test_nobody_watches(void**)
{
    ComputeUnits::watch_kernels(false);
    run_late(6);
    assert_true(ComputeUnits::of(6).are_free(User::exchange));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_twice_as_many_each_time),
        cmocka_unit_test(test_a_kernel_in_time),
        cmocka_unit_test(test_a_late_look),
        cmocka_unit_test(test_two_kinds_of_kernels),
        cmocka_unit_test(test_a_kernel_behind_another),
        cmocka_unit_test(test_nobody_watches),
    };
    return hier::test::run_cases(argc, argv, "compute_units", tests);
}
