// SPDX-License-Identifier: BSD-3-Clause
// Host memory that all calls of the process borrow. It is pinned if possible, and pageable
// otherwise. What is kept has a limit. On simulated devices.
#include "memory/staging_pool.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "hier/statistics.h"
#include "memory/staging_budget.hpp"
#include "test/support/device_process.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

StagingPool& pool() { return StagingPool::instance(); }
std::size_t kept() { return StagingBudget::instance().taken(); }
std::uint64_t pinned() { return hip_sim_live("pinned") + hip_sim_live("registrations"); }

// Lets the runtime's call that pins memory fail. The loop finds out which call of borrow() that is.
StagingPool::Lent borrow_unpinned(std::size_t bytes)
{
    StagingPool::Lent lent;
    for (std::uint64_t pins = 1; pins < 100; pins++) {
        hip_sim_fail_at(hip_sim_calls() + pins);
        lent = pool().borrow(0, bytes);
        hip_sim_fail_at(0);
        if (!lent.is_pinned) break;
        pool().clear();
    }
    return lent;
}

void test_what_is_given_back_is_lent_again(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        (void)device_memory(64);
        const auto first = pool().borrow(0, 3 * MiB);
        if (first.data == nullptr || !first.is_pinned || pinned() != 1) return "not pinned";
        const auto second = pool().borrow(0, MiB);
        if (second.data == first.data) return "the same twice";
        pool().give_back(first.data);
        pool().give_back(second.data);
        if (pool().borrow(0, MiB).data != second.data) return "a larger one for little";
        if (pool().borrow(0, 4 * MiB).data != first.data) return "not the large one";
        if (hier_statistic(HIER_STATISTIC_STAGING_MISSES) != 2) return "two were made";
        if (hier_statistic(HIER_STATISTIC_STAGING_HITS) != 2) return "two were kept";
        return pinned() == 2 && kept() == 5 * MiB ? "" : "more than two were made";
    }));
}

// However many sizes there are, pinned memory is made up to the limit only. It is never freed,
// because that could wait for kernels.
void test_pinned_memory_has_a_limit(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        (void)device_memory(64);
        std::mt19937 random(1);
        for (int call = 0; call < 300; call++) {
            const std::size_t bytes = 1 + random() % (64 * MiB);
            const auto lent = pool().borrow(0, bytes);
            if (lent.data == nullptr) return "no memory";
            if (!lent.is_pinned) return "nothing pinned for a window";
            pool().give_back(lent.data);
            if (kept() > 128 * MiB) return "too much is kept";
        }
        const auto before = pinned();
        const auto large = pool().borrow(0, 129 * MiB);
        if (large.data == nullptr || large.is_pinned) return "pinned above the limit";
        large.data[129 * MiB - 1] = std::byte{1};
        pool().give_back(large.data);
        return pinned() == before && kept() <= 128 * MiB ? "" : "it is kept";
    }));
}

bool is_mapped(std::byte* page)
{
    unsigned char state = 0;
    return mincore(page, 1, &state) == 0;
}

void test_pageable_memory(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        std::vector<std::byte*> blocks;
        for (int i = 0; i < 5; i++) {
            blocks.push_back(pool().borrow(-1, 40 * MiB + static_cast<std::size_t>(i)).data);
            if (blocks.back() == nullptr) return "no pages";
        }
        for (std::byte* const block : blocks) pool().give_back(block);
        if (kept() > 128 * MiB) return "too much is kept";
        if (is_mapped(blocks[0]) || is_mapped(blocks[1])) return "the oldest are kept";
        if (!is_mapped(blocks[4])) return "the last is not kept";
        if (pool().borrow(-1, 40 * MiB + 4).data != blocks[4]) return "it is not lent again";
        return pinned() == 0 ? "" : "something is pinned";
    }));
}

// Pageable memory makes room for pinned memory.
void test_pinned_memory_comes_first(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        (void)device_memory(64);
        std::byte* const pages = pool().borrow(-1, 100 * MiB).data;
        pool().give_back(pages);
        if (!pool().borrow(0, 60 * MiB).is_pinned) return "not pinned";
        return kept() == 64 * MiB ? "" : "both are kept";
    }));
}

// Without a limit nothing is kept, and nothing is pinned.
void test_nothing_may_be_kept(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        (void)device_memory(64);
        StagingBudget::instance().set_limit(0);
        const auto lent = pool().borrow(0, MiB);
        if (lent.data == nullptr || lent.is_pinned) return "not pageable";
        pool().give_back(lent.data);
        return is_mapped(lent.data) || kept() > 0 ? "it is kept" : "";
    }));
}

// If nothing can be pinned, memory is pageable. It is pinned as soon as that is possible.
void test_nothing_to_pin(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        (void)device_memory(64);
        const auto pages = borrow_unpinned(MiB);
        if (pages.data == nullptr || pages.is_pinned) return "no pages";
        pages.data[MiB - 1] = std::byte{1};
        pool().give_back(pages.data);
        return pool().borrow(0, MiB).is_pinned ? "" : "not pinned later";
    }));
}

std::size_t resident(std::byte* from, std::size_t bytes)
{
    std::vector<unsigned char> pages(bytes / 4096);
    if (mincore(from, bytes, pages.data()) != 0) return bytes;
    std::size_t count = 0;
    for (const unsigned char page : pages) count += page & 1;
    return count * 4096;
}

void test_sparse_memory(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        constexpr std::size_t bytes = std::size_t{1} << 38;  // more than the machine has free
        std::byte* const data = pool().borrow_sparse(bytes);
        if (data == nullptr) return "no room";
        std::fill(data + 5000, data + 5000 + MiB, std::byte{1});
        if (resident(data, 2 * MiB) < MiB) return "nothing is there";
        StagingPool::drop_pages(data + 5000, MiB);
        if (resident(data, 2 * MiB) != 0) return "pages are left";
        pool().give_back(data);
        return is_mapped(data) || kept() > 0 ? "it is kept" : "";
    }));
}

// A copy reads pageable memory at any time until it ends, so the pages must stay.
void test_pages_of_a_copy_that_does_not_end(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        gpu::limit_waits({.bound = std::chrono::seconds(1), .fails = true});
        std::byte* const device = device_memory(MiB);
        const auto pages = borrow_unpinned(MiB);
        if (pages.data == nullptr || pages.is_pinned) return "no pages";
        std::fill(pages.data, pages.data + MiB, std::byte{7});
        hip_sim_hang_copy_at(hip_sim_copies() + 1);
        const gpu::Copy copy{device, pages.data, MiB, gpu::Copy::inside};
        std::uint64_t ticket = 0;
        if (failed(gpu::queue(0)->start({&copy, 1}, {}, ticket))) return "no copy";
        pool().clear();
        hip_sim_hang_copy_at(0);
        gives_success(hipDeviceSynchronize(), "the end of the copy");
        return get(device, MiB) == Bytes(MiB, 7) ? "" : "it read something else";
    }));
}

// Threads borrow at the same time. Nobody gets what another one has.
void test_threads(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        (void)device_memory(64);
        std::vector<std::thread> threads;
        std::atomic<bool> is_shared{false};
        for (int t = 0; t < 4; t++) {
            threads.emplace_back([t, &is_shared] {
                std::mt19937 random(static_cast<unsigned>(t));
                for (int call = 0; call < 200; call++) {
                    const std::size_t bytes = 1 + random() % MiB;
                    std::byte* const data = pool().borrow(random() % 2 == 0 ? 0 : -1, bytes).data;
                    const auto mine = static_cast<std::byte>(t);
                    data[0] = data[bytes - 1] = mine;
                    std::this_thread::yield();
                    if (data[0] != mine || data[bytes - 1] != mine) is_shared = true;
                    pool().give_back(data);
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        if (kept() > 128 * MiB) return "too much is kept";
        return is_shared ? "two had the same" : "";
    }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_given_back_is_lent_again),
        cmocka_unit_test(test_pinned_memory_has_a_limit),
        cmocka_unit_test(test_pageable_memory),
        cmocka_unit_test(test_pinned_memory_comes_first),
        cmocka_unit_test(test_nothing_may_be_kept),
        cmocka_unit_test(test_nothing_to_pin),
        cmocka_unit_test(test_sparse_memory),
        cmocka_unit_test(test_pages_of_a_copy_that_does_not_end),
        cmocka_unit_test(test_threads),
    };
    return hier::test::run_cases(argc, argv, "staging_pool", tests);
}
