// SPDX-License-Identifier: BSD-3-Clause
// The parts of the program nonblocking.
#pragma once

#include "requests.hpp"

namespace hier_test {

// nonblocking_active.cpp
void run_first_call(Tester& tester, std::size_t bytes);
void run_early_tests(Tester& tester);
void run_reverse(Tester& tester);
void run_between(Tester& tester);
void run_duplicates(Tester& tester);
void run_ways(Tester& tester);
void run_large(Tester& tester);

// nonblocking_ends.cpp
void run_freed_communicator(Tester& tester);
void run_freed_requests(Tester& tester);
void run_freed_types(Tester& tester);
void run_statuses(Tester& tester);
void run_wrong_size(Tester& tester, int offender, bool is_more);

// nonblocking_threads.cpp
void run_threads(Session& session, int threads);

}  // namespace hier_test
