// SPDX-License-Identifier: BSD-3-Clause
// Copies that do not end. By default a wait for such a copy is reported after coll_hier_timeout, and
// goes on. Or the wait ends with an error, and memory that the copy still uses is not given back.
// The n-th copy of the simulated devices stops on request.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "hier/hier.h"
#include "memory/staging_pool.hpp"
#include "test/support/gpu_rank.hpp"
#include "test/support/reachable.hpp"
#include "test/support/team_rank.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t bytes = 100000;
const Bytes content(bytes, 7);

void keep_log(int, const char* line) { ForkedRank::add_log(line); }

hier_config config_of(int timeout, int action = HIER_TIMEOUT_FAIL)
{
    hier_config config = config_for_tests();
    config.timeout = timeout;
    config.timeout_action = action;
    config.log = keep_log;
    return config;
}

std::byte* allocate_pinned(std::size_t size)
{
    return gpu::runtime()->memory().allocate_pinned(gpu::used_device(), size);
}
void free_pinned(std::byte* memory)
{
    gpu::runtime()->memory().free_pinned(gpu::used_device(), memory);
}

// A process of its own, with device memory and pinned memory to copy it to.
struct Process {
    explicit Process(int timeout, int action = HIER_TIMEOUT_FAIL)
    {
        use_built_module();
        const hier_config config = config_of(timeout, action);
        hier_init(&config);
        if (gpu::runtime() == nullptr) throw std::runtime_error("no runtime");
        device = device_memory(bytes);
        put(device, content);
        if (is_reachable(device)) throw std::runtime_error("not a device's");
        pinned = allocate_pinned(bytes);
        if (pinned == nullptr || copy() != HIER_OK) throw std::runtime_error("no copy");
        std::fill(pinned, pinned + bytes, std::byte{0});
    }
    int copy() const
    {
        const hier_strided_copy copy{pinned, device, bytes, 1, 0, 0};
        return hier_memory_copy(&copy, 1);
    }
    bool is_there() const
    {
        return std::all_of(pinned, pinned + bytes, [](std::byte b) { return b == std::byte{7}; });
    }
    static void hang_next_copy() { hip_sim_hang_copy_at(hip_sim_copies() + 1); }

    std::byte* device;
    std::byte* pinned;
};

const char* run_alone(int timeout, std::string (*body)(Process&), int action = HIER_TIMEOUT_FAIL)
{
    return keep(first_fault(run_ranks(1, [&](ForkedRank&) {
        Process process(timeout, action);
        return body(process);
    })));
}

constexpr const char* line = "ROCm: copies of device 0 have not ended in 1 s (coll_hier_timeout)";

// Fault: a device copy does not end | it hangs in the simulated runtime | an error within the bound
void test_copy_that_does_not_end(void**)
{
    expect_no_reason(run_alone(1, [](Process& p) -> std::string {
        Process::hang_next_copy();
        if (const int code = p.copy(); code != HIER_ERR_TIMEOUT) return hier_strerror(code);
        if (!ForkedRank::is_logged(line)) return "it is not said: " + ForkedRank::log_lines();
        // No copy is started behind the one that hangs.
        const auto copies = hip_sim_copies();
        if (p.copy() != HIER_ERR_TIMEOUT || hip_sim_copies() != copies) return "another copy";
        return "";
    }));
}

// Calls that give memory back would wait for the copy.
// Fault: a device copy does not end | it hangs in the simulated runtime | an error within the bound
void test_memory_of_a_copy_that_does_not_end(void**)
{
    expect_no_reason(run_alone(1, [](Process& p) -> std::string {
        if (StagingPool::instance().borrow(0, bytes).data == nullptr) return "no bounce buffer";
        const auto pinned = hip_sim_live("pinned") + hip_sim_live("registrations");
        Process::hang_next_copy();
        (void)p.copy();
        free_pinned(p.pinned);
        hier_finalize();
        if (hip_sim_live("pinned") + hip_sim_live("registrations") != pinned)
            return "it was given back";
        if (hip_sim_live("streams") == 0) return "its stream was given back";
        // The copy's memory is still there, so the copy can go on.
        hip_sim_hang_copy_at(0);
        gives_success(hipDeviceSynchronize(), "the end of the copy");
        return p.is_there() ? "" : "it did not go on";
    }));
}

// A copy that ends late, but within the bound, is like any other.
void test_copy_that_ends_late(void**)
{
    for (const int timeout : {0, 60}) {
        expect_no_reason(run_alone(timeout, [](Process& p) -> std::string {
            Process::hang_next_copy();
            std::thread later([] {
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
                hip_sim_hang_copy_at(0);
            });
            const int code = p.copy();
            later.join();
            if (code != HIER_OK) return hier_strerror(code);
            if (!p.is_there()) return "not all of it came";
            if (p.copy() != HIER_OK) return "no other copy";
            free_pinned(p.pinned);
            hier_finalize();
            return hip_sim_live("streams") + hip_sim_live("pinned") + hip_sim_live("events") == 0
                       ? ""
                       : "something is left";
        }));
    }
}

void continue_copies_after(std::chrono::milliseconds time)
{
    std::thread([time] {
        std::this_thread::sleep_for(time);
        hip_sim_hang_copy_at(0);
    }).detach();
}

// A copy that ends behind the bound is reported. Nothing else happens.
void test_copy_that_is_waited_for(void**)
{
    const auto body = [](Process& p) -> std::string {
        Process::hang_next_copy();
        continue_copies_after(std::chrono::milliseconds(1500));
        if (const int code = p.copy(); code != HIER_OK) return hier_strerror(code);
        if (!p.is_there()) return "not all of it came";
        if (!ForkedRank::is_logged(line) || !ForkedRank::is_logged("waiting for them goes on") ||
            !ForkedRank::is_logged("ROCm: copies of device 0 have ended, after 1 s"))
            return "not said: " + ForkedRank::log_lines();
        return p.copy() == HIER_OK ? "" : "no other copy";
    };
    expect_no_reason(run_alone(1, body, HIER_TIMEOUT_REPORT));
}

void test_trial_that_is_waited_for(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank&) -> std::string {
        use_built_module();
        setenv("HIP_SIM_VERSION", "60400000", 1);  // a version that needs a trial
        const hier_config config = config_of(1, HIER_TIMEOUT_REPORT);
        hier_init(&config);
        std::byte* const device = device_memory(bytes);
        if (gpu::runtime() == nullptr) return "no runtime";
        hip_sim_hang_copy_at(1);
        continue_copies_after(std::chrono::milliseconds(1500));
        if (gpu::queue(allocation_of(device).device) == nullptr) return "no queue";
        return ForkedRank::is_logged("ROCm: trial copies have not ended in 1 s")
                   ? ""
                   : ForkedRank::log_lines();
    }))));
}

// The trial before the first copy does not end.
void test_trial_that_does_not_end(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(1, [](ForkedRank&) -> std::string {
        use_built_module();
        setenv("HIP_SIM_VERSION", "60400000", 1);  // a version that needs a trial
        const hier_config config = config_of(1);
        hier_init(&config);
        std::byte* const device = device_memory(bytes);
        if (gpu::runtime() == nullptr) return "no runtime";
        hip_sim_hang_copy_at(1);
        if (gpu::queue(allocation_of(device).device) != nullptr) return "a queue";
        if (gpu::queue(0) != nullptr) return "a queue the second time";
        if (!ForkedRank::is_logged("no streams for copies: hipErrorNotReady"))
            return ForkedRank::log_lines();
        free_pinned(allocate_pinned(bytes));
        hier_finalize();
        return hip_sim_live("streams") == 1 ? "" : "its stream was given back";
    }))));
}

// One copy of an allgather does not end. All ranks get an error, and all of them can go on. Copies
// go straight into device memory, through lent memory, or through cells of shared memory, which
// stay too.
enum class Into { device, pool, host };
std::string gather_without_end(ForkedRank& self, Into into)
{
    Process process(1);
    hier_config config = config_of(1);
    config.ranks_per_node = 2;
    TeamRank team(self, config);
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    std::byte* receive = into == Into::host ? allocate_pinned(2 * bytes)
                                            : device_memory(2 * bytes, into == Into::pool);
    const auto call = [&] { return team.call_raw(process.device, receive, bytes); };
    if (const int code = call(); code != HIER_OK) return hier_strerror(code);
    if (self.rank() == 0) Process::hang_next_copy();
    int code = call();
    // Rank 1 may have got everything that it waited for.
    if (code == HIER_OK && self.rank() == 1) code = call();
    if (code != HIER_ERR_TIMEOUT && code != HIER_ERR_PEER) return hier_strerror(code);
    if (team.start_only() != code) return "it takes another call";
    team.end();
    return "";
}

// Fault: a device copy does not end | it hangs in the simulated runtime | an error within the bound
void test_allgather_that_does_not_end(void**)
{
    for (const Into into : {Into::device, Into::pool, Into::host}) {
        expect_no_reason(keep(first_fault(
            run_ranks(2, [&](ForkedRank& self) { return gather_without_end(self, into); }))));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_copy_that_does_not_end),
        cmocka_unit_test(test_memory_of_a_copy_that_does_not_end),
        cmocka_unit_test(test_copy_that_ends_late),
        cmocka_unit_test(test_copy_that_is_waited_for),
        cmocka_unit_test(test_trial_that_does_not_end),
        cmocka_unit_test(test_trial_that_is_waited_for),
        cmocka_unit_test(test_allgather_that_does_not_end),
    };
    return hier::test::run_cases(argc, argv, "gpu_waits", tests);
}
