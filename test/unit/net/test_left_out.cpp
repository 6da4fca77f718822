// SPDX-License-Identifier: BSD-3-Clause
// Networks that could not be connected are tried again after a while, by a clock that the test sets.
#include "net/left_out.hpp"
#include "test/support/fake_clock.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

const char* each_has_its_time()
{
    const NetworkChoice first{.devices = "eth0", .transports = "tcp"};
    const NetworkChoice second{.devices = "eth1", .transports = "tcp"};
    LeftOut left_out;
    left_out.add(first);
    if (!left_out.contains(first)) return "not left out";
    if (left_out.contains(second)) return "another one is left out";
    fake_now += LeftOut::duration;
    left_out.add(second);
    left_out.add(first);
    if (!left_out.contains(first)) return "too soon";
    fake_now += std::chrono::seconds(1);
    if (left_out.contains(first)) return "left out for good";
    if (!left_out.contains(second)) return "the second with the first";
    left_out.add(first);
    return left_out.contains(first) ? nullptr : "not left out once more";
}

void test_time(void**) { expect_no_reason(each_has_its_time()); }

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_time),
    };
    return cmocka_run_group_tests_name("left_out", tests, nullptr, nullptr);
}
