// SPDX-License-Identifier: BSD-3-Clause
// What the process counts for tools, in tallies and outside.
#include "base/statistics.hpp"

#include <memory>
#include <thread>
#include <vector>

#include "test/support/wrapped/clock.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

Statistics& statistics() { return Statistics::instance(); }
int sum(int statistic) { return static_cast<int>(hier_statistic(statistic)); }

void test_a_tally_counts_as_long_as_the_process(void**)
{
    const int before = sum(HIER_STATISTIC_PROGRAM_HITS);
    auto first = std::make_unique<Tally>();
    auto second = std::make_unique<Tally>();
    first->add(HIER_STATISTIC_PROGRAM_HITS);
    second->add(HIER_STATISTIC_PROGRAM_HITS, 10);
    statistics().add(HIER_STATISTIC_PROGRAM_HITS, 100);
    assert_int_equal(sum(HIER_STATISTIC_PROGRAM_HITS) - before, 111);
    first.reset();
    assert_int_equal(sum(HIER_STATISTIC_PROGRAM_HITS) - before, 111);
    second->add(HIER_STATISTIC_PROGRAM_HITS, 1000);
    second.reset();
    assert_int_equal(sum(HIER_STATISTIC_PROGRAM_HITS) - before, 1111);
}

void test_statistics_are_apart(void**)
{
    Tally tally;
    std::vector<int> before;
    for (int i = 0; i < HIER_STATISTICS; i++) before.push_back(sum(i));
    for (int i = 0; i < HIER_STATISTICS; i++) tally.add(i, static_cast<unsigned long long>(i) + 1);
    for (int i = 0; i < HIER_STATISTICS; i++)
        assert_int_equal(sum(i) - before[static_cast<std::size_t>(i)], i + 1);
    assert_int_equal(sum(-1), 0);
    assert_int_equal(sum(HIER_STATISTICS), 0);
}

// Each thread has tallies of its own, which come and go while others are read.
void test_threads_count_at_once(void**)
{
    constexpr int threads = 4, rounds = 200, counts = 50;
    const int before = sum(HIER_STATISTIC_KEY_HITS);
    std::vector<std::thread> running;
    for (int t = 0; t < threads; t++)
        running.emplace_back([] {
            for (int round = 0; round < rounds; round++) {
                Tally tally;
                for (int i = 0; i < counts; i++) tally.add(HIER_STATISTIC_KEY_HITS);
                statistics().add(HIER_STATISTIC_KEY_HITS);
            }
        });
    bool grows = true;
    int last = before;
    for (int reads = 0; reads < 1000; reads++) {
        const int now = sum(HIER_STATISTIC_KEY_HITS);
        grows = grows && now >= last;
        last = now;
    }
    for (std::thread& thread : running) thread.join();
    assert_true(grows);
    assert_int_equal(sum(HIER_STATISTIC_KEY_HITS) - before, threads * rounds * (counts + 1));
}

void test_the_time_of_a_scope(void**)
{
    use_clock(ClockMode::fake);
    const int before = sum(HIER_STATISTIC_SETUP_TIME);
    {
        const TimeCount time(HIER_STATISTIC_SETUP_TIME);
        fake_now += std::chrono::microseconds(7);
    }
    use_clock(ClockMode::real);
    assert_int_equal(sum(HIER_STATISTIC_SETUP_TIME) - before, 7000);
}

void test_times_are_wanted_until_the_last_gives_up(void**)
{
    assert_false(statistics().times_calls());
    hier_want_call_times(1);
    hier_want_call_times(1);
    hier_want_call_times(0);
    assert_true(statistics().times_calls());
    hier_want_call_times(0);
    assert_false(statistics().times_calls());
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_a_tally_counts_as_long_as_the_process),
        cmocka_unit_test(test_statistics_are_apart),
        cmocka_unit_test(test_threads_count_at_once),
        cmocka_unit_test(test_the_time_of_a_scope),
        cmocka_unit_test(test_times_are_wanted_until_the_last_gives_up),
    };
    return hier::test::run_cases(argc, argv, "statistics", tests);
}
