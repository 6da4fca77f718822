// SPDX-License-Identifier: BSD-3-Clause
// Every measured row of bench/results/calibration.csv, simulated.
#include <cmath>
#include <string>
#include <vector>

#include "test/support/source_tree.hpp"
#include "tools/simulator/algorithms.hpp"
#include "tools/simulator/calibrate.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace bench::simulator;
using namespace hier::test;

constexpr double max_error = 0.15;

std::string judge(const Measurement& m)
{
    const std::size_t bytes = m.options.sizes[0];
    const double simulated = run_all(m.options, bytes)[0].outcome.seconds;
    if (std::abs(simulated / m.seconds - 1) <= max_error) return "";
    return std::to_string(bytes) + " bytes a rank: " + std::to_string(simulated * 1e6) +
           " us instead of " + std::to_string(m.seconds * 1e6) + " us, " + m.source;
}

void test_rows(void**)
{
    std::vector<Measurement> rows;
    const std::string wrong =
        read_measurements(hier::test::source_file("bench/results/calibration.csv"), rows);
    expect_no_reason(keep(wrong));
    assert_true(rows.size() > 20);
    for (const Measurement& row : rows) expect_no_reason(keep(judge(row)));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return hier::test::run_cases(argc, argv, "simulate measured", tests);
}
