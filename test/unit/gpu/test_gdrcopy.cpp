// SPDX-License-Identifier: BSD-3-Clause
// The CPU's windows to memory of CUDA, by GDRCopy: how many there are, how large they are, and what
// becomes of them when memory goes or GDRCopy refuses. The simulated GDRCopy aborts at any use of memory
// that is gone.
#include <array>
#include <atomic>
#include <thread>

#include "node/device/cpu_access.hpp"
#include "test/support/publisher.hpp"
#include "test/support/simulated_gdrcopy.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t MiB = 1 << 20, max_windows = 32, some = 1000;
using Window = std::shared_ptr<const gpu::CpuWindow>;

const char* run_with_gdrcopy(const std::function<std::string()>& body, const char* refuses = "")
{
    setenv("CUDA_SIM_REFUSES", refuses, 1);
    return run(1, "20", [&](ForkedRank&) {
        load_gdrcopy();
        return body();
    });
}

Window window_to(const std::byte* buffer, std::size_t bytes = some)
{
    std::string reason;
    return gpu::runtime()->cpu_window({buffer, bytes}, allocation_of(buffer), reason);
}

// Stores and loads through the window, against copies.
std::string use(const Window& window, std::byte* buffer, int salt)
{
    if (!window) return "no window";
    const Bytes out = content(salt, 1, some), in = content(salt, 2, some);
    window->store(buffer, out.data(), some);
    if (get(buffer, some) == out) return "copies see stores before the flush";
    window->flush(buffer + some / 2);
    if (get(buffer, some) != out) return "copies miss what was stored";
    Bytes loaded(some);
    put(buffer, in);
    window->load(loaded.data(), buffer, some);
    return loaded == in ? "" : "a load misses what was copied";
}

std::string has_pins(std::size_t count)
{
    if (count_of_gdrcopy("pins") == count && count_of_gdrcopy("mappings") == count) return "";
    return std::to_string(count_of_gdrcopy("pins")) + " pins, not " + std::to_string(count);
}

// Each buffer is in an allocation of its own.
void test_more_buffers_than_windows(void**)
{
    expect_no_reason(run_with_gdrcopy([]() -> std::string {
        std::vector<std::byte*> buffers;
        for (std::size_t i = 0; i < max_windows + 8; i++) buffers.push_back(device_memory(some));
        for (int round = 0; round < 2; round++) {
            for (std::size_t i = 0; i < buffers.size(); i++) {
                const auto wrong = use(window_to(buffers[i]), buffers[i], static_cast<int>(i));
                if (!wrong.empty()) return wrong;
            }
        }
        std::string wrong = has_pins(max_windows);
        // The last ones are kept.
        const auto asked = count_of_gdrcopy("asked");
        for (std::size_t i = 8; i < buffers.size(); i++) (void)window_to(buffers[i]);
        if (count_of_gdrcopy("asked") != asked) return "it does not keep the last windows";
        const Window held = window_to(buffers[8]);
        gpu::release_runtime();
        if (wrong.empty()) wrong = has_pins(1);
        return wrong.empty() ? use(held, buffers[8], 1) : wrong;
    }));
}

void test_memory_that_is_made_again(void**)
{
    expect_no_reason(run_with_gdrcopy([]() -> std::string {
        ReachedBuffer reached;
        std::byte* const buffer = device_memory(some);
        if (const auto wrong = use(window_to(buffer), buffer, 1); !wrong.empty()) return wrong;
        for (int life = 0; life < 4; life++) {
            gives_success(hipFree(buffer), "hipFree");
            if (device_memory(some) != buffer) return "another address";
            put(buffer, content(life, 3, some));
            const auto* const window = reached.window({buffer, some, allocation_of(buffer)});
            Bytes loaded(some);
            if (window == nullptr) return "not reached";
            window->load(loaded.data(), buffer, some);
            if (loaded != content(life, 3, some)) return "bytes of other memory";
            if (const auto wrong = use(window_to(buffer), buffer, life); !wrong.empty())
                return wrong;
            // Those of the trial and of the buffer. No pin keeps memory that was freed.
            if (const auto wrong = has_pins(2); !wrong.empty()) return wrong;
        }
        return "";
    }));
}

// A pool of PyTorch has many buffers. A window has those near by.
void test_buffers_far_apart(void**)
{
    expect_no_reason(run_with_gdrcopy([]() -> std::string {
        std::byte* const pool = device_memory(64 * MiB);
        const Window first = window_to(pool), middle = window_to(pool + 30 * MiB),
                     last = window_to(pool + 64 * MiB - some);
        if (!first || !middle || !last) return "no window";
        if (first->has(pool + 4 * MiB, 1) || middle->has(pool + 26 * MiB, 1) ||
            last->has(pool + 60 * MiB, 1))
            return "large windows";
        if (last->has(pool + 64 * MiB - some, some + 1)) return "a window beyond the end";
        std::string wrong = use(first, pool, 1);
        if (wrong.empty()) wrong = use(last, pool + 64 * MiB - some, 2);
        if (wrong.empty()) wrong = use(middle, pool + 30 * MiB, 3);
        if (!wrong.empty()) return wrong;
        const auto past = reinterpret_cast<std::uintptr_t>(pool) % (2 * MiB);
        if (!window_to(pool + 12 * MiB - past, 0)) return "no window to an empty buffer";
        if (window_to(pool + some) != first) return "another window for a neighbour";
        return has_pins(4);
    }));
}

void test_large_buffers(void**)
{
    expect_no_reason(run_with_gdrcopy([]() -> std::string {
        std::byte* const pool = device_memory(64 * MiB);
        if (window_to(pool, 64 * MiB)) return "a window to 64 MiB";
        if (!window_to(pool, 16 * MiB)) return "no window to 16 MiB";
        return use(window_to(pool + 40 * MiB), pool + 40 * MiB, 1);
    }));
}

// The application may unmap a segment and map another one there.
void test_segments(void**)
{
    expect_no_reason(run_with_gdrcopy([]() -> std::string {
        std::byte* const base = mapped_memory(3, 0);
        std::byte* const second = base + segment_bytes;
        const Window window = window_to(base);
        if (!window) return "no window";
        if (window->has(second, 1)) return "a window to two segments";
        if (window_to(second - some / 2)) return "a window to a buffer in two segments";
        std::string wrong = use(window, base, 1);
        for (int life = 0; life < 3 && wrong.empty(); life++) {
            wrong = use(window_to(second), second, life);
            unmap_segment(second);
            map_segment(second, 0);
        }
        return wrong;
    }));
}

// Threads share a process's windows, and hold some that are no longer kept. GDRCopy takes one call at a
// time.
void test_threads(void**)
{
    expect_no_reason(run_with_gdrcopy([]() -> std::string {
        std::vector<std::byte*> buffers;
        for (std::size_t i = 0; i < max_windows + 8; i++) buffers.push_back(device_memory(some));
        std::vector<std::thread> threads;
        std::atomic<int> missing{0};
        for (std::size_t t = 0; t < 4; t++) {
            threads.emplace_back([&, t] {
                std::array<Window, 4> held;
                if (t % 2 == 0) use_device(0);  // else the thread has no context
                for (std::size_t i = 0; i < 3 * buffers.size(); i++) {
                    std::byte* const buffer = buffers[(i + 10 * t) % buffers.size()];
                    char byte = 0;
                    Window& window = held[i % held.size()];
                    window = window_to(buffer);
                    if (window)
                        window->load(&byte, buffer, 1);
                    else
                        missing++;
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        return missing == 0 ? has_pins(max_windows) : "no window";
    }));
}

// After the trial. Each rank publishes by copies, and asks once for a buffer's memory.
// Fault: GDRCopy refuses to pin a buffer | a simulated GDRCopy | copies move the blocks; right results
void test_refused_pins(void**)
{
    setenv("HIP_SIM_LEAST_DELAY_US", "5000", 1);
    const auto body = [](ForkedRank& self) -> std::string {
        load_gdrcopy();
        if (max_block_by_cpu(self.rank()) == 0) return "the trial has failed";
        setenv("CUDA_SIM_REFUSES", "pins", 1);
        Publisher rank(self, self.rank(), {.max_by_cpu = 4096});
        if (const std::string wrong = calls(rank, 3); !wrong.empty()) return wrong;
        // Of the trial, the block, once more when the trial's window has ended, and the receive buffer.
        if (count_of_gdrcopy("asked") != 4) return "it asks again";
        std::byte* const pool = device_memory(8 * MiB);
        if (window_to(pool) || window_to(pool + 4 * MiB)) return "a window";
        return count_of_gdrcopy("asked") == 5 ? "" : "it asks again for a pool";
    };
    unsetenv("CUDA_SIM_REFUSES");
    expect_no_reason(run(3, "50", body));
    unsetenv("HIP_SIM_LEAST_DELAY_US");
}

// The device shows little of its memory. Then windows that nobody holds give way.
void test_no_room_for_more_pins(void**)
{
    expect_no_reason(run_with_gdrcopy(
        []() -> std::string {
            for (int i = 0; i < 10; i++) {
                std::byte* const buffer = device_memory(some);
                const auto wrong = use(window_to(buffer), buffer, i);
                if (!wrong.empty()) return wrong;
            }
            return "";
        },
        "room"));
}

std::string moves_none(const char* words)
{
    if (max_block_by_cpu(0) != 0) return "the CPU moves blocks";
    const std::string line = std::string("moves no blocks of its memory: it does not reach that "
                                         "memory: ") +
                             words;
    return ForkedRank::is_logged(line) ? "" : ForkedRank::log_lines();
}

// Fault: GDRCopy or its driver is missing | no library; a simulated GDRCopy | a line; kernels or copies move the blocks
void test_no_gdrcopy(void**)
{
    // This machine may have the real one, which does not know the simulated memory.
    expect_no_reason(run(1, "20", [](ForkedRank&) {
        return moves_none("libgdrapi.so.2").empty() ? "" : moves_none("GDRCopy");
    }));
    expect_no_reason(
        run_with_gdrcopy([] { return moves_none("GDRCopy finds neither gdrdrv"); }, "gdrcopy"));
    expect_no_reason(
        run_with_gdrcopy([] { return moves_none("GDRCopy cannot pin it: Invalid"); }, "pins"));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_more_buffers_than_windows),
        cmocka_unit_test(test_memory_that_is_made_again),
        cmocka_unit_test(test_buffers_far_apart),
        cmocka_unit_test(test_large_buffers),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_refused_pins),
        cmocka_unit_test(test_no_room_for_more_pins),
        cmocka_unit_test(test_no_gdrcopy),
    };
    return hier::test::run_cases(argc, argv, "gdrcopy", tests);
}
