// SPDX-License-Identifier: BSD-3-Clause
// Copies of rows between device memory and host memory. They are one copy if the runtime takes
// that, and otherwise one copy for each row. The simulated devices count copies.
#include <cstring>
#include <vector>

#include "test/support/device_process.hpp"
#include "test/support/reachable.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

std::byte* pinned_memory(std::size_t bytes)
{
    return gpu::runtime()->memory().allocate_pinned(gpu::used_device(), bytes);
}

// Copies rows from the device and back to another place. Returns "" if the rows are right and no
// other byte was written.
struct Rows {
    std::size_t bytes;
    std::size_t count;
    std::size_t pitch;  // in device memory
    std::uint64_t copies;

    std::size_t span() const { return (count - 1) * pitch + bytes; }
    Bytes line(std::size_t row) const
    {
        Bytes all(bytes);
        unsigned char value = static_cast<unsigned char>(row * 31);
        for (unsigned char& byte : all) byte = value = static_cast<unsigned char>(value * 5 + 1);
        return all;
    }

    std::string go(std::byte* from, std::byte* to) const
    {
        for (std::size_t row = 0; row < count; row++) {
            put(from + row * pitch, line(row));
            put(to + row * pitch, Bytes(bytes, 255));
        }
        (void)is_reachable(from);
        const std::size_t packed_pitch = bytes + 3;
        std::byte* const packed = pinned_memory(count * packed_pitch);
        std::fill(packed, packed + count * packed_pitch, std::byte{255});
        const auto before = hip_sim_copies();
        const hier_strided_copy out{packed, from, bytes, count, packed_pitch, pitch};
        const hier_strided_copy in{to, packed, bytes, count, pitch, packed_pitch};
        if (hier_memory_copy(&out, 1) != HIER_OK) return "no copy from the device";
        for (std::size_t row = 0; row < count; row++) {
            Bytes wanted = line(row);
            wanted.resize(packed_pitch, 255);
            if (std::memcmp(packed + row * packed_pitch, wanted.data(), packed_pitch) != 0)
                return "packed: row " + std::to_string(row);
        }
        if (hier_memory_copy(&in, 1) != HIER_OK) return "no copy to the device";
        const auto made = hip_sim_copies() - before;
        for (std::size_t row = 0; row < count; row++) {
            if (get(to + row * pitch, bytes) != line(row)) return "row " + std::to_string(row);
        }
        gpu::runtime()->memory().free_pinned(gpu::used_device(), packed);
        return made == 2 * copies ? "" : std::to_string(made) + " copies";
    }
};

void test_rows_are_one_copy(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        for (const Rows& rows : {Rows{4, 1000, 12, 1}, Rows{1, 7, 1, 1}, Rows{8, 1000, 8, 1},
                                 Rows{1000, 50, 4096, 1}, Rows{5, 1, 5, 1}}) {
            std::byte* const from = device_memory(rows.span() + 2);
            std::byte* const to = device_memory(rows.span() + 2);
            put(to, Bytes(rows.span() + 2, 9));
            const std::string fault = rows.go(from + 1, to + 1);
            if (!fault.empty()) return fault;
            const Bytes got = get(to, rows.span() + 2);
            for (std::size_t i = 0; i < got.size(); i++) {
                const bool is_gap = i < 1 || i > rows.span() || (i - 1) % rows.pitch >= rows.bytes;
                if (is_gap && got[i] != 9) return "written at " + std::to_string(i);
            }
        }
        return "";
    }));
}

// The simulated runtime ends a process that asks for one copy of rows in several segments.
void test_rows_in_several_segments(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        std::byte* const from = mapped_memory(2, 0);
        std::byte* const to = mapped_memory(2, 0);
        const Rows rows{100, 40, 2 * segment_bytes / 40, 40};
        return rows.go(from, to);
    }));
}

void test_a_pitch_beyond_the_runtimes(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        constexpr std::size_t pitch = 2560 * MiB;
        const auto make = [] {
            std::byte* const base = reserve(pitch + segment_bytes);
            map_segment(base, 0);
            map_segment(base + pitch, 0);
            return base;
        };
        return Rows{1000, 2, pitch, 2}.go(make(), make());
    }));
}

void test_rows_of_many_bytes(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        // One copy of rows has at most 128 MiB, and rows that are longer are cut.
        for (const Rows& rows :
             {Rows{48 * MiB, 3, 48 * MiB, 2}, Rows{130 * MiB, 2, 131 * MiB, 4}}) {
            const std::string fault =
                rows.go(device_memory(rows.span()), device_memory(rows.span()));
            if (!fault.empty()) return fault;
        }
        return "";
    }));
}

// Each call of the runtime fails in turn. Then the bytes come another way, or there is an error.
void test_failing_calls(void**)
{
    expect_no_reason(run_on_devices([]() -> std::string {
        constexpr std::size_t rows = 20, bytes = 10, pitch = 30;
        std::byte* const device = device_memory(rows * pitch);
        put(device, Bytes(rows * pitch, 5));
        (void)is_reachable(device);
        std::byte* const packed = pinned_memory(rows * bytes);
        const hier_strided_copy copy{packed, device, bytes, rows, bytes, pitch};
        bool has_failed = true;
        for (std::uint64_t n = 1; has_failed; n++) {
            std::fill(packed, packed + rows * bytes, std::byte{0});
            const auto call = hip_sim_calls() + n;
            hip_sim_fail_at(call);
            const int code = hier_memory_copy(&copy, 1);
            has_failed = hip_sim_calls() >= call;
            hip_sim_fail_at(0);
            if (code != HIER_OK) return "call " + std::to_string(n) + ": " + hier_strerror(code);
            if (hipGetLastError() != hipSuccess)
                return "call " + std::to_string(n) + ": an error for the application";
            if (!std::all_of(packed, packed + rows * bytes,
                             [](std::byte b) { return b == std::byte{5}; }))
                return "call " + std::to_string(n) + ": not all of it came";
        }
        return "";
    }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_one_copy),
        cmocka_unit_test(test_rows_in_several_segments),
        cmocka_unit_test(test_a_pitch_beyond_the_runtimes),
        cmocka_unit_test(test_rows_of_many_bytes),
        cmocka_unit_test(test_failing_calls),
    };
    return hier::test::run_cases(argc, argv, "device_rows", tests);
}
