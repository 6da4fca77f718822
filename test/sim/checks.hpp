// SPDX-License-Identifier: BSD-3-Clause
// For the tests of the simulated runtime. Each test runs in processes of its own, so that it has an
// environment and a first use of its own. A check that fails throws.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "test/support/forked.hpp"
#include "test/support/where.hpp"

namespace hip_sim::test {

using hier::test::Where;
using Environment = std::vector<std::pair<const char*, const char*>>;
using Bytes = std::vector<unsigned char>;

// Operations take milliseconds, so they end long after the call that started them.
inline constexpr std::pair<const char*, const char*> slowly{"HIP_SIM_DELAY_US", "20000"};

void require(bool holds, Where where = Where::current());
void gives(hipError_t got, hipError_t wanted = hipSuccess, Where where = Where::current());

// Returns the first fault of any process, for expect_no_reason(). nullptr: there is none.
const char* run(int processes, const Environment& environment,
                const std::function<void(hier::test::ForkedRank&)>& body);
const char* run_alone(const Environment& environment, const std::function<void()>& body);

// Returns the signal that ends a child process which calls `what`. 0: no signal ends it.
int signal_of(const std::function<void()>& what);

std::uint64_t calls();
std::uint64_t live(const char* what);
void fail_at(std::uint64_t call);
void hang_at(std::uint64_t copy);

// Nobody frees what these return. The process ends soon.
std::byte* device_memory(std::size_t bytes);
std::byte* pinned_memory(std::size_t bytes);
hipStream_t stream(unsigned flags = hipStreamNonBlocking);
hipEvent_t event();

Bytes pattern(std::size_t bytes, unsigned seed);
void put(void* to, const Bytes& bytes);
Bytes get(const void* from, std::size_t bytes);

// The tests, by file.
void test_hidden_memory(void**);
void test_memory_that_the_cpu_can_reach(void**);
void test_memory_behind_a_large_bar(void**);
void test_attributes(void**);
void test_unknown_memory(void**);
void test_an_address_that_comes_back(void**);
void test_copies_of_rows(void**);
void test_kinds_of_copies(void**);
void test_copies_without_compute_units(void**);
void test_copies_out_of_bounds(void**);
void test_registered_memory(void**);
void test_memory_of_a_pool(void**);

void test_copies_are_asynchronous(void**);
void test_pageable_memory(void**);
void test_half_a_copy_is_seen(void**);
void test_streams_wait_for_events(void**);
void test_the_null_stream(void**);
void test_stream_writes(void**);
void test_devices(void**);
void test_free_waits_for_copies(void**);
void test_handles_that_are_none(void**);

void test_ipc(void**);
void test_ipc_of_memory_that_was_freed(void**);
void test_ipc_refusals(void**);

void test_mapped_segments(void**);
void test_shared_segments(void**);
void test_what_has_no_handle(void**);

void test_failing_calls(void**);
void test_failing_rank(void**);
void test_failing_copy(void**);
void test_hanging_copy(void**);
void test_last_error(void**);
void test_report(void**);
void test_no_device(void**);
void test_nothing_before_the_first_use(void**);
void test_what_is_not_simulated(void**);

}  // namespace hip_sim::test
