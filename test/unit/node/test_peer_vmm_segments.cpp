// SPDX-License-Identifier: BSD-3-Clause
// An application maps device memory segment by segment. Peers map the same segments.
#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "node/device/exports/vmm_exports.hpp"
#include "node/device/imports/peer_vmm_segments.hpp"
#include "test/support/engine_rank.hpp"
#include "test/support/wrapped/system.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// Rank 1 receives at `into`. All other buffers are plain device memory.
std::string exchange_into(Rank& rank, const ForkedRank& self, std::byte* into,
                          std::uint64_t sequence, std::uint64_t failing = 0)
{
    if (self.rank() == 1) rank.receive_into(into);
    const auto fault = exchange(rank, self, sequence, failing);
    return fault.empty() ? "" : "call " + std::to_string(sequence) + ": " + fault;
}

bool lends() { return ForkedRank::is_logged("peers push into"); }
std::string whether_mapped()
{
    return lends() || ForkedRank::is_logged("through shared memory") ? "not mapped" : "";
}

std::ptrdiff_t open_files()
{
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
}

constexpr std::size_t shard = 100000;  // three shards cross the bounds of segments
constexpr std::size_t offset = 77777;
constexpr std::size_t all_segments = 4;  // the buffer lies in the first three
constexpr std::uint64_t step = PeerVmmSegments::window_bytes / 2;

void test_segments_are_mapped(void**)
{
    expect_no_reason(run(3, "200", [](ForkedRank& self) -> std::string {
        Rank rank(self, false, shard);
        const bool is_owner = self.rank() == 1;
        std::byte* const base = is_owner ? mapped_memory(all_segments, 1) : nullptr;
        auto fault = exchange_into(rank, self, rank.receive(), 1);
        const std::ptrdiff_t files = open_files();
        std::uint64_t min = UINT64_MAX, max = 0;
        for (std::uint64_t sequence = 2; sequence <= 6 && fault.empty(); sequence++) {
            const std::uint64_t before = hip_sim_calls();
            fault = exchange_into(rank, self, base + offset, sequence);
            const std::uint64_t calls = hip_sim_calls() - before;
            min = std::min(min, calls);
            max = std::max(max, calls);
        }
        if (!fault.empty()) return fault;
        // Three segments: each is retained and exported, or imported, mapped and given access.
        if (min + (is_owner ? 6 : 9) > max) return "not only at the first call";
        if (hip_sim_live("handles") != (is_owner ? all_segments : 3)) return "handles are left";
        if (!is_owner && hip_sim_live("segments") != 3) return "not the segments that there are";
        // The simulated runtime keeps a file for each handle.
        if (open_files() != files + (is_owner ? 0 : 3)) return "files are left open";
        return whether_mapped();
    }));
}

// Other memory comes to the same addresses.
void test_a_segment_that_is_another(void**)
{
    expect_no_reason(run(2, "50", [](ForkedRank& self) -> std::string {
        Rank rank(self, false, shard);
        const bool is_owner = self.rank() == 1;
        std::byte* const base = is_owner ? mapped_memory(all_segments, 1) : nullptr;
        for (std::uint64_t sequence = 1; sequence <= 10; sequence++) {
            const auto fault = exchange_into(rank, self, base + offset, sequence);
            if (!fault.empty()) return fault;
            if (!is_owner && hip_sim_live("handles") != hip_sim_live("segments"))
                return "the old segment is still held";
            if (is_owner) {
                std::byte* const one = base + (sequence % 3) * segment_bytes;
                unmap_segment(one);
                map_segment(one, 1);
            }
        }
        return whether_mapped();
    }));
}

// A segment is unmapped, and no call uses these addresses again. The memory still comes free soon.
void test_a_segment_that_is_no_more(void**)
{
    expect_no_reason(run(2, "20", [](ForkedRank& self) -> std::string {
        Rank rank(self, false, shard);
        const bool is_owner = self.rank() == 1;
        std::byte* const plain = rank.receive();
        std::byte* const base = is_owner ? mapped_memory(all_segments, 1) : nullptr;
        auto fault = exchange_into(rank, self, base + offset, 1);
        if (!fault.empty()) return fault;
        const std::uint64_t before = hip_sim_live("handles");
        if (is_owner) unmap_segment(base + segment_bytes);
        for (std::uint64_t sequence = 2; sequence <= 40; sequence++) {
            fault = exchange_into(rank, self, plain, sequence);
            if (!fault.empty()) return fault;
        }
        if (is_owner) return "";
        const bool is_gone = hip_sim_live("handles") == before - 1 && hip_sim_live("segments") == 2;
        return is_gone ? "" : "the segment is still held";
    }));
}

// If segments cannot be shared, the owner lends cells, as before.
void test_segments_that_cannot_be_shared(void**)
{
    const auto body = [](bool may_be_exported) {
        return [may_be_exported](ForkedRank& self) -> std::string {
            Rank rank(self, false, shard);
            const bool is_owner = self.rank() == 1;
            std::byte* const base =
                is_owner ? mapped_memory(all_segments, 1, may_be_exported) : nullptr;
            for (std::uint64_t sequence = 1; sequence <= 3; sequence++) {
                const auto fault = exchange_into(rank, self, base + offset, sequence);
                if (!fault.empty()) return fault;
            }
            if (lends() != is_owner) return "not by device cells";
            return is_owner || hip_sim_live("segments") == 0 ? "" : "mapped";
        };
    };
    expect_no_reason(run(2, "20", body(false)));
    expect_no_reason(
        run(2, "20", body(true), not_sharing_version));  // a call would end the process
}

// A window begins at every 32 GiB of the owner's addresses. The buffer begins before such a bound,
// or behind it.
void test_across_windows(void**)
{
    expect_no_reason(run(2, "20", [](ForkedRank& self) -> std::string {
        Rank rank(self, false, shard);
        std::byte* base = nullptr;
        if (self.rank() == 1) {
            const auto reserved = reinterpret_cast<std::uintptr_t>(reserve(2 * step));
            const std::uintptr_t bound = (reserved + step) / step * step;
            base = reinterpret_cast<std::byte*>(bound) - segment_bytes / 2;
            for (std::size_t i = 0; i < all_segments; i++) map_segment(base + i * segment_bytes, 1);
        }
        for (std::uint64_t sequence = 1; sequence <= 4; sequence++) {
            const std::size_t at = sequence % 2 == 0 ? offset : segment_bytes + 5;
            const auto fault = exchange_into(rank, self, base + at, sequence);
            if (!fault.empty()) return fault;
        }
        const std::uint64_t windows = hip_sim_live("reservations");
        return windows == (self.rank() == 0 ? 2 : 1) ? whether_mapped() : "not two windows";
    }));
}

// There are more segments than may have a descriptor at a time. The first calls go by device cells.
void test_many_segments(void**)
{
    expect_no_reason(run(2, "0", [](ForkedRank& self) -> std::string {
        constexpr std::size_t segments = 2 * VmmExports::max_open + 40;
        Rank rank(self, false, segments / 2 * segment_bytes - offset);
        std::byte* const base = self.rank() == 1 ? mapped_memory(segments, 1) : nullptr;
        for (std::uint64_t sequence = 1; sequence <= 4; sequence++) {
            const bool is_shared = ForkedRank::is_logged("its peers map its segments");
            if (self.rank() == 1 && is_shared != (sequence > 3)) return "not in the third call";
            const auto fault = exchange_into(rank, self, base + offset, sequence);
            if (!fault.empty()) return fault;
            if (VmmExports::instance().open_descriptors() > VmmExports::max_open) return "too many";
        }
        if (self.rank() == 0 && hip_sim_live("segments") != segments) return "not all are mapped";
        return ForkedRank::is_logged("through shared memory") ? "not mapped" : "";
    }));
}

// The kernel refuses to hand out descriptors on one rank. All take device cells, and say why.
void test_descriptors_that_are_refused(void**)
{
    expect_no_reason(run(3, "20", [](ForkedRank& self) -> std::string {
        if (self.rank() == 2) getfd_call.fail_all(EPERM);
        Rank rank(self, false, shard);
        const bool is_owner = self.rank() == 1;
        std::byte* const base = is_owner ? mapped_memory(all_segments, 1) : nullptr;
        for (std::uint64_t sequence = 1; sequence <= 3; sequence++) {
            const auto fault = exchange_into(rank, self, base + offset, sequence);
            if (!fault.empty()) return fault;
        }
        const bool is_said = ForkedRank::is_logged("pidfd_getfd of process");
        if (is_said != (self.rank() == 2)) return "said by the wrong rank";
        return lends() == is_owner ? "" : "not by device cells";
    }));
}

// Each call that the owner needs to share its memory fails in turn. The data arrives all the same.
// When no call fails any more, the memory is shared.
void test_failing_exports(void**)
{
    constexpr std::uint64_t more_than_it_takes = 40;
    int shared = 0;
    for (std::uint64_t failing = 1; failing <= more_than_it_takes; failing += 3) {
        const char* reason = run(2, "20", [failing](ForkedRank& self) -> std::string {
            Rank rank(self, false, shard);
            const bool is_owner = self.rank() == 1;
            std::byte* const base = is_owner ? mapped_memory(all_segments, 1) : nullptr;
            auto fault = exchange_into(rank, self, base + offset, 1, is_owner ? failing : 0);
            if (fault.empty()) fault = exchange_into(rank, self, base + offset, 2);
            if (!fault.empty()) return std::to_string(failing) + ": " + fault;
            return is_owner && !lends() ? "shared" : "";
        });
        const bool is_shared = reason != nullptr && std::string(reason) == "rank 1: shared";
        shared += is_shared ? 1 : 0;
        if (!is_shared) expect_no_reason(reason);
    }
    assert_true(shared > 0);
}

// Each call that the peer needs to map segments fails in turn. The peer is told again. After some
// such calls it gets cells.
std::string fail_to_map(ForkedRank& self, std::uint64_t failing, std::uint64_t calls)
{
    Rank rank(self, false, shard);
    const bool is_owner = self.rank() == 1;
    std::byte* const base = is_owner ? mapped_memory(all_segments, 1) : nullptr;
    for (std::uint64_t sequence = 1; sequence <= calls + 3; sequence++) {
        if (is_owner) rank.receive_into(base + offset);
        if (failed(rank.begin(sequence))) return "begin failed";
        if (failed(rank.transport().announce(Op::every_peer))) return "announcing failed";
        rank.meet();
        if (!is_owner && sequence <= calls) hip_sim_fail_at(hip_sim_calls() + failing);
        const int peer = 1 - self.rank();
        if (!rank.wait_for_peer(peer)) return "never ready";
        hip_sim_fail_at(0);
        if (failed(rank.put_own(peer, 0))) return "a put failed";
        rank.submit();
        const auto fault = rank.received(peer, sequence);
        if (!fault.empty()) return "call " + std::to_string(sequence) + ": " + fault;
        if (!await([&] { return rank.turn() && rank.counter.done == 1; })) return "not completed";
        rank.counter = {};
        rank.transport().end();
        rank.meet();
    }
    if (!is_owner && calls == 1 && hip_sim_live("segments") != 3)
        return std::to_string(hip_sim_live("segments")) + " segments are mapped";
    return lends() == (is_owner && calls > 1) ? "" : "lent cells, or told for ever";
}

void test_failing_mappings(void**)
{
    // The calls are: device, import, device, ... ; address, device, map, access, device, ...
    for (std::uint64_t failing = 1; failing <= 20; failing++)
        expect_no_reason(
            run(2, "20", [&](ForkedRank& self) { return fail_to_map(self, failing, 1); }));
    expect_no_reason(run(2, "20", [&](ForkedRank& self) { return fail_to_map(self, 2, 3); }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_segments_are_mapped),
        cmocka_unit_test(test_a_segment_that_is_another),
        cmocka_unit_test(test_a_segment_that_is_no_more),
        cmocka_unit_test(test_segments_that_cannot_be_shared),
        cmocka_unit_test(test_across_windows),
        cmocka_unit_test(test_many_segments),
        cmocka_unit_test(test_descriptors_that_are_refused),
        cmocka_unit_test(test_failing_exports),
        cmocka_unit_test(test_failing_mappings),
    };
    return hier::test::run_cases(argc, argv, "peer_vmm_segments", tests);
}
