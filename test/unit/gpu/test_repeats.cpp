// SPDX-License-Identifier: BSD-3-Clause
// Launches that repeat an earlier one: which of them go by a prepared kernel, and that every kernel uses
// the values that its launch asks for.
#include "fake_launches.hpp"

namespace {

int renew(void**)
{
    device = {};
    for (std::uint64_t& word : words) word = 0;
    return 0;
}

void test_one_call(void**)
{
    Exchanges program;
    program.turns(10, 1);
    expect_no_reason(keep(program.used(8)));
    assert_int_equal(device.sets, 1);
}

void test_several_calls_in_turns(void**)
{
    Exchanges program;
    program.turns(10, 5);
    expect_no_reason(keep(program.used(5 * 8)));
    assert_int_equal(device.sets, 5);
}

void test_calls_in_any_order(void**)
{
    Exchanges program;
    for (unsigned i = 0; i < 100; i++) program.call(i * i % 7 % 3);
    expect_no_reason(keep(program.used(100 - 2 * 3)));
}

// More than are known: the one that comes next is always the one that has been dropped.
void test_too_many_calls(void**)
{
    Exchanges program;
    program.turns(10, known_calls);
    expect_no_reason(keep(program.used(8 * known_calls)));
    program.turns(10, known_calls + 1);
    expect_no_reason(keep(program.used(9 * known_calls)));
}

// Another zone, or a flag that has been left out.
void test_flag_that_is_not_the_next(void**)
{
    Exchanges program;
    program.turns(5, 2);
    program.skip_flags(7);
    program.call(1, false);
    program.turns(5, 2);
    expect_no_reason(keep(program.used(2 * 3 + 2 * 5)));
}

// Each zone has flags of its own. The values at the end are of all kernels.
void test_two_zones(void**)
{
    Exchanges program;
    for (unsigned i = 0; i < 20; i++) program.call(0, true, i % 2);
    expect_no_reason(keep(program.used(20 - 2 * 2)));
}

void test_end_that_is_not_the_next(void**)
{
    Exchanges program;
    program.turns(5, 1);
    program.skip_ends(3);
    program.turns(5, 1);
    expect_no_reason(keep(program.used(3 + 4)));
}

void test_no_prepared_kernels(void**)
{
    device.has_prepared = false;
    Exchanges program;
    program.turns(10, 1);
    expect_no_reason(keep(program.used(0)));
}

// Each attempt costs time. So there are a few, and all calls are launched nevertheless.
void test_refusals(void**)
{
    for (const bool at_start : {false, true}) {
        device = {};
        (at_start ? device.refuses_start : device.refuses_set) = true;
        Exchanges program;
        program.turns(100, 1);
        expect_no_reason(keep(program.used(0)));
        assert_in_range(device.sets, 1, 10);
    }
}

void test_refused_once(void**)
{
    Exchanges program;
    program.turns(5, 1);
    device.refuses_start = true;
    program.turns(1, 1);
    device.refuses_start = false;
    program.turns(5, 1);
    expect_no_reason(keep(program.used(3 + 5)));
}

void test_launch_that_fails(void**)
{
    device.refuses_launch = true;
    Exchanges program;
    program.turns(3, 1);
    assert_int_equal(program.errors(), 3);
    device.refuses_launch = false;
    program.turns(10, 1);
    expect_no_reason(keep(program.used(8)));
}

void test_lost_context(void**)
{
    Exchanges program;
    program.turns(5, 1);
    program.lose_context();
    assert_int_equal(device.destroyed, 0);
    program.turns(5, 1);
    expect_no_reason(keep(program.used(6)));
    program.close();
    assert_int_equal(device.destroyed, 1);
    // That of the lost context is never destroyed.
    assert_int_equal(alive.size(), 1);
    delete *alive.begin();
}

// Every field but the values tells calls apart.
void test_calls_that_differ(void**)
{
    const Exchange e = exchange_of(0, 1, 1);
    assert_true(is_same_call(e, exchange_of(0, 2, 3)));
    const auto differs = [&](auto change) {
        Exchange other = e;
        change(other);
        return !is_same_call(e, other);
    };
    assert_true(differs([](Exchange& o) { o.rank = 1; }));
    assert_true(differs([](Exchange& o) { o.ranks = 3; }));
    assert_true(differs([](Exchange& o) { o.bytes = 8; }));
    assert_true(differs([](Exchange& o) { o.stride = 2; }));
    assert_true(differs([](Exchange& o) { o.block = memory + 1; }));
    assert_true(differs([](Exchange& o) { o.zone = words; }));
    assert_true(
        differs([](Exchange& o) { o.control = reinterpret_cast<Exchange::Control*>(words); }));
    assert_true(
        differs([](Exchange& o) { o.stop = reinterpret_cast<const std::uint32_t*>(words); }));
    assert_true(differs([](Exchange& o) { o.done = nullptr; }));
    assert_true(differs([](Exchange& o) { o.to[1] = words; }));
    assert_true(differs([](Exchange& o) { o.into[1] = memory; }));
    assert_false(differs([](Exchange& o) { o.into[2] = memory; }));
}

// Values may take any steps, but those of all signals take the same.
void test_fan_outs(void**)
{
    FanOuts program;
    for (std::uint64_t i = 1; i <= 10; i++) program.call(0, i * i << 16, (i * i << 16) + 5, 3 * i);
    expect_no_reason(keep(program.used(8)));
    assert_int_equal(device.sets, 1);
    for (std::uint64_t i = 11; i <= 20; i++) program.call(0, i << 16, i << 17, 3 * i);
    expect_no_reason(keep(program.used(8)));
}

// A kernel that runs may not have read its place yet.
void test_last_kernel_still_runs(void**)
{
    FanOuts program;
    for (std::uint64_t i = 1; i <= 3; i++) program.call(0, i, i, i);
    device.is_late = true;
    program.call(0, 10, 10, 4);
    program.call(0, 11, 11, 5);
    expect_no_reason(keep(program.used(2)));
    device.running.front()();
    assert_true(device.used == (Values{10, 4}));
    device.end_all();
    assert_true(device.used == (Values{11, 5}));
    device.is_late = false;
    program.call(0, 12, 12, 6);
    expect_no_reason(keep(program.used(3)));
}

// The same of a place whose call has been dropped meanwhile.
void test_place_of_a_dropped_call(void**)
{
    FanOuts program;
    for (std::uint64_t i = 1; i <= 3; i++) program.call(0, i, i, i);
    device.is_late = true;
    program.call(0, 10, 10, 4);
    for (unsigned buffer = 1; buffer <= known_calls; buffer++) program.call(buffer, 20, 20, 5);
    // The last one has the place of the first one.
    for (std::uint64_t i = 0; i < 5; i++) program.call(known_calls, 30 + i, 30 + i, 6 + i);
    expect_no_reason(keep(program.used(2)));
    device.running.front()();
    assert_true(device.used == (Values{10, 4}));
    device.end_all();
}

// Nothing tells when a kernel has read its place, or there are no places.
void test_without_words_of_the_host(void**)
{
    FanOuts program;
    for (std::uint64_t i = 1; i <= 10; i++) program.call(0, i, i, i, false);
    program.lose_places();
    for (std::uint64_t i = 11; i <= 20; i++) program.call(0, i, i, i);
    expect_no_reason(keep(program.used(0)));
}

void test_fan_outs_that_differ(void**)
{
    const FanOut f = fan_out_of(0, 10, 20, 1);
    assert_true(is_same_call(f, fan_out_of(0, 11, 21, 5)));
    assert_false(is_same_call(f, fan_out_of(0, 11, 22, 5)));
    const auto differs = [&](auto change) {
        FanOut other = f;
        change(other);
        return !is_same_call(f, other);
    };
    assert_true(differs([](FanOut& o) { o.blocks = 2; }));
    assert_true(differs([](FanOut& o) { o.block[0].from = memory + 1; }));
    assert_true(differs([](FanOut& o) { o.block[0].bytes = 8; }));
    assert_true(differs([](FanOut& o) { o.block[0].is_narrow = 1; }));
    assert_true(differs([](FanOut& o) { o.block[0].first = 1; }));
    assert_true(differs([](FanOut& o) { o.block[0].places = 1; }));
    assert_false(differs([](FanOut& o) { o.block[1].bytes = 8; }));
    assert_true(differs([](FanOut& o) { o.places = 1; }));
    assert_true(differs([](FanOut& o) { o.to[1] = memory; }));
    assert_true(differs([](FanOut& o) { o.signals = 1; }));
    assert_true(differs([](FanOut& o) { o.signal[1].at = words; }));
    assert_true(differs([](FanOut& o) { o.done = nullptr; }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_one_call, renew),
        cmocka_unit_test_setup(test_several_calls_in_turns, renew),
        cmocka_unit_test_setup(test_calls_in_any_order, renew),
        cmocka_unit_test_setup(test_too_many_calls, renew),
        cmocka_unit_test_setup(test_flag_that_is_not_the_next, renew),
        cmocka_unit_test_setup(test_two_zones, renew),
        cmocka_unit_test_setup(test_end_that_is_not_the_next, renew),
        cmocka_unit_test_setup(test_no_prepared_kernels, renew),
        cmocka_unit_test_setup(test_refusals, renew),
        cmocka_unit_test_setup(test_refused_once, renew),
        cmocka_unit_test_setup(test_launch_that_fails, renew),
        cmocka_unit_test_setup(test_lost_context, renew),
        cmocka_unit_test(test_calls_that_differ),
        cmocka_unit_test_setup(test_fan_outs, renew),
        cmocka_unit_test_setup(test_last_kernel_still_runs, renew),
        cmocka_unit_test_setup(test_place_of_a_dropped_call, renew),
        cmocka_unit_test_setup(test_without_words_of_the_host, renew),
        cmocka_unit_test(test_fan_outs_that_differ),
    };
    return run_cases(argc, argv, "repeated launches", tests);
}
