// SPDX-License-Identifier: BSD-3-Clause
// Networks that could not be connected are tried again after a while. The test sets the clock.
#include "net/quarantine.hpp"
#include "test/support/wrapped/clock.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

const char* each_has_its_time()
{
    const NetworkChoice first{.devices = "eth0", .transports = "tcp"};
    const NetworkChoice second{.devices = "eth1", .transports = "tcp"};
    Quarantine quarantine;
    quarantine.add(first);
    if (!quarantine.contains(first)) return "not left out";
    if (quarantine.contains(second)) return "another one is left out";
    fake_now += Quarantine::duration;
    quarantine.add(second);
    quarantine.add(first);
    if (!quarantine.contains(first)) return "too soon";
    fake_now += std::chrono::seconds(1);
    if (quarantine.contains(first)) return "left out for good";
    if (!quarantine.contains(second)) return "the second with the first";
    quarantine.add(first);
    return quarantine.contains(first) ? nullptr : "not left out once more";
}

void test_time(void**) { expect_no_reason(each_has_its_time()); }

}  // namespace

int main(int argc, char** argv)
{
    hier::test::use_clock(hier::test::ClockMode::fake);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_time),
    };
    return hier::test::run_cases(argc, argv, "quarantine", tests);
}
