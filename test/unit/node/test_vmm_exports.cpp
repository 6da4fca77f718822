// SPDX-License-Identifier: BSD-3-Clause
// One process offers another its VMM segments: again, too late, too many, or in vain.
#include <sys/resource.h>

#include "node/device/exports/vmm_exports.hpp"
#include "node/device/imports/peer_vmm_segments.hpp"
#include "test/support/engine_rank.hpp"
#include "test/support/own_table.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::uint64_t step = PeerVmmSegments::window_bytes / 2;

// Rank 1 offers its memory, and the others map it, without a call of a team.
class Direct {
public:
    explicit Direct(const ForkedRank& self)
        : rank_(self.rank()), group_(self.group()), is_owner(rank_ == 1)
    {
        for (const auto& address : group_.collect(ExportTable::instance().address()))
            tables.push_back(PeerTable::open(address));
    }
    // All ranks call this. False: rank 1 has not offered all, or this rank cannot map.
    bool acquire(std::byte* memory, std::size_t bytes)
    {
        bool is_there = !is_owner || share(memory, bytes);
        const PeerVmmSegments::Range range = group_.collect(range_)[1];
        if (!is_owner) {
            take_in();
            is_there = PeerVmmSegments::instance().acquire(*tables[1], range, rank_, window, at) ==
                       Status::ok;
        }
        meet();
        return is_there;
    }
    bool share_if_owner(std::byte* memory, std::size_t bytes)
    {
        return is_owner && share(memory, bytes);
    }
    bool share(std::byte* memory, std::size_t bytes)
    {
        range_ = {reinterpret_cast<std::uint64_t>(memory), bytes, 0};
        return VmmExports::instance().share({memory, bytes, allocation_of(memory)}, tables,
                                            range_.digest);
    }
    void take_in() const
    {
        if (!is_owner) tables[1]->take_in(rank_);
    }
    void release() const
    {
        if (!is_owner) PeerVmmSegments::instance().release(window);
    }
    void lose() const { (void)ExportTable::instance().say_lost(tables[1]->process()); }
    void meet() const { (void)group_.collect(0); }

private:
    int rank_;
    Group group_;

public:
    bool is_owner;
    std::vector<PeerTable*> tables;
    PeerVmmSegments::Window* window = nullptr;
    std::byte* at = nullptr;

private:
    PeerVmmSegments::Range range_{};
};

// There is a limit for windows. A window in use stays, and so do the ones that were used last.
void test_bound(void**)
{
    expect_no_reason(run(2, "0", [](ForkedRank& self) -> std::string {
        constexpr std::uint64_t count = PeerVmmSegments::max_windows + 2;
        Direct pair(self);
        std::byte* const base = pair.is_owner ? reserve(count * step) : nullptr;
        PeerVmmSegments& peers = PeerVmmSegments::instance();
        PeerVmmSegments::Window* first = nullptr;
        std::byte* at_first = nullptr;
        std::string fault;
        for (std::uint64_t i = 0; i < count; i++) {
            std::byte* const one = base + i * step;
            if (pair.is_owner) {
                map_segment(one, 1);
                put(one, content(1, i, segment_bytes));
            }
            if (!pair.acquire(one, segment_bytes)) fault = "not there";
            if (pair.is_owner) continue;
            if (get(pair.at, segment_bytes) != content(1, i, segment_bytes)) fault = "other memory";
            if (i == 0) {
                first = pair.window;
                at_first = pair.at;
            } else {
                pair.release();
            }
        }
        if (!pair.is_owner) {
            if (get(at_first, segment_bytes) != content(1, 0, segment_bytes))
                fault = "closed in use";
            if (hip_sim_live("reservations") != PeerVmmSegments::max_windows) fault = "too many";
            if (peers.size() != hip_sim_live("segments")) fault = "miscounted";
            peers.clear();
            if (peers.size() != 1) fault = "clear() closes what is in use, or not the rest";
            peers.release(first);
            peers.clear();
            if (hip_sim_live("reservations") + hip_sim_live("handles") != 0) fault = "left";
        }
        pair.meet();
        return fault;
    }));
}

// The owner unmaps what lies in a window. The next window takes its place.
void test_an_empty_window(void**)
{
    expect_no_reason(run(2, "0", [](ForkedRank& self) -> std::string {
        Direct pair(self);
        std::byte* const base = pair.is_owner ? reserve(5 * step) : nullptr;
        std::byte* const places[] = {base, base + 2 * step, base + 4 * step};
        for (std::byte* const place : places) {
            if (pair.is_owner) map_segment(place, 1);
            if (!pair.acquire(place, segment_bytes)) return "not there";
            pair.release();
            const bool is_held = !pair.is_owner && hip_sim_live("reservations") != 1;
            pair.meet();
            if (is_held) return "the empty window is still reserved";
            if (pair.is_owner) {
                unmap_segment(place);
                VmmExports::instance().look_after();
            }
            pair.meet();
            pair.take_in();
        }
        return "";
    }));
}

// A call still uses the segments when they are offered again.
void test_offered_anew_while_in_use(void**)
{
    expect_no_reason(run(2, "0", [](ForkedRank& self) -> std::string {
        Direct pair(self);
        std::byte* const base = pair.is_owner ? mapped_memory(2, 1) : nullptr;
        if (pair.is_owner) put(base, content(1, 1, segment_bytes));
        if (!pair.acquire(base, segment_bytes)) return "not there";
        std::byte* const at = pair.at;
        const std::uint64_t mapped = hip_sim_live("segments");
        if (!pair.is_owner) pair.lose();
        pair.meet();
        if (pair.is_owner) pair.share(base, 2 * segment_bytes);
        pair.meet();
        pair.take_in();
        std::string fault;
        if (!pair.is_owner && hip_sim_live("segments") != mapped) fault = "unmapped in use";
        if (!pair.acquire(base, 2 * segment_bytes)) fault = "not there again";
        if (!pair.is_owner && get(at, segment_bytes) != content(1, 1, segment_bytes))
            fault = "gone";
        if (!pair.is_owner && hip_sim_live("segments") != mapped + 1) fault = "mapped again";
        pair.meet();
        return fault;
    }));
}

// Other memory comes to the same address. The peer drops the old segment when it takes in the table,
// even if no call uses that memory.
void test_another_segment(void**)
{
    expect_no_reason(run(2, "0", [](ForkedRank& self) -> std::string {
        Direct pair(self);
        std::byte* const base = pair.is_owner ? mapped_memory(2, 1) : nullptr;
        if (!pair.acquire(base, segment_bytes)) return "not there";
        pair.release();
        if (pair.is_owner) {
            unmap_segment(base);
            VmmExports::instance().look_after();
        }
        pair.meet();
        pair.take_in();
        const bool is_held = !pair.is_owner && hip_sim_live("handles") != 0;
        pair.meet();
        if (is_held) return "the old segment is still held";
        if (pair.is_owner) {
            map_segment(base, 1);
            put(base, content(1, 2, segment_bytes));
        }
        if (!pair.acquire(base, segment_bytes)) return "not there any more";
        const bool is_right =
            pair.is_owner || get(pair.at, segment_bytes) == content(1, 2, segment_bytes);
        pair.meet();
        return is_right ? "" : "the old segment";
    }));
}

// A process without a descriptor for its table offers nothing.
void test_no_table(void**)
{
    expect_no_reason(run(2, "0", [](ForkedRank& self) -> std::string {
        rlimit limit{};
        if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return "no limit";
        const rlimit none{0, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &none) != 0) return "no other limit";
        const bool has_table = ExportTable::instance().refusal().empty();
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return "the limit stays";
        Direct pair(self);
        std::byte* const base = pair.is_owner ? mapped_memory(1, 1) : nullptr;
        if (has_table) return "a table";
        return pair.is_owner && pair.share(base, segment_bytes) ? "offered" : "";
    }));
}

// No more than some descriptors are open, and none when all peers have taken them.
void test_limit_of_descriptors(void**)
{
    expect_no_reason(run(3, "0", [](ForkedRank& self) -> std::string {
        constexpr std::size_t count = VmmExports::max_open + 10;
        Direct pair(self);
        VmmExports& exports = VmmExports::instance();
        std::byte* const base = pair.is_owner ? mapped_memory(count, 1) : nullptr;
        const bool is_early = pair.share_if_owner(base, count * segment_bytes);
        if (is_early) return "offered at once";
        if (pair.is_owner && exports.open_descriptors() != VmmExports::max_open) return "too few";
        pair.meet();
        if (self.rank() == 0) pair.take_in();  // rank 2 is late
        pair.meet();
        const std::uint64_t version = own_table().version;
        if (pair.share_if_owner(base, count * segment_bytes)) return "offered without rank 2";
        if (own_table().version != version) return "rank 2 is not waited for";
        pair.meet();
        if (self.rank() == 2) pair.take_in();
        pair.meet();
        if (!pair.acquire(base, count * segment_bytes)) return "not there";
        if (pair.is_owner) exports.look_after();
        if (exports.open_descriptors() != 0) return "left open";
        return "";
    }));
}

// A peer does not take in what it is offered. Its descriptors are closed when others need room. It
// is offered the segments again when it needs them.
void test_a_late_peer(void**)
{
    expect_no_reason(run(2, "0", [](ForkedRank& self) -> std::string {
        constexpr std::size_t bytes = VmmExports::max_open * segment_bytes;
        Direct pair(self);
        std::byte* const one = pair.is_owner ? mapped_memory(VmmExports::max_open, 1) : nullptr;
        std::byte* const two = pair.is_owner ? mapped_memory(VmmExports::max_open, 1) : nullptr;
        if (pair.is_owner && !pair.share(one, bytes)) return "not offered";
        if (pair.is_owner && !pair.share(two, bytes)) return "no room is made";
        if (!pair.acquire(two, bytes)) return "the second is not there";
        pair.release();
        if (!pair.acquire(one, bytes)) return "the first is not there";
        if (!pair.is_owner && hip_sim_live("segments") != 2 * VmmExports::max_open)
            return "not all of them";
        pair.meet();
        return "";
    }));
}

// Rare losses are forgotten: with 1000 calls between two losses the owner goes on to share. At the
// end fit() is tried, for buffers that are longer than a window.
void test_rare_losses_are_forgotten(void**)
{
    expect_no_reason(run(2, "0", [](ForkedRank& self) -> std::string {
        Direct pair(self);
        std::byte* const base = pair.is_owner ? mapped_memory(2, 1) : nullptr;
        constexpr int more_than_are_taken = 12;
        constexpr int rarely = 1001;
        for (int i = 0; i < more_than_are_taken; i++) {
            if (!pair.acquire(base, segment_bytes)) return "not there, time " + std::to_string(i);
            pair.release();
            if (!pair.is_owner) pair.lose();
            pair.meet();
            std::uint64_t digest = 0;
            if (pair.is_owner) (void)pair.share(base, segment_bytes);  // takes note of the loss
            for (int k = 0; k < rarely && pair.is_owner; k++)
                (void)VmmExports::instance().share({base, 1, allocation_of(base)}, {}, digest);
        }
        const ExportEntry first{step - 100, 200, 1};
        const ExportEntry near{step + PeerVmmSegments::window_bytes - 100, 100, 2};
        const ExportEntry far{step + PeerVmmSegments::window_bytes, 100, 2};
        return PeerVmmSegments::fit(first, {2 * step - 100, 100, 2}) &&
                       PeerVmmSegments::fit(first, first) &&
                       PeerVmmSegments::fit({step, 200, 1}, near) &&
                       !PeerVmmSegments::fit({step, 200, 1}, far)
                   ? ""
                   : "what fits into a window";
    }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_an_empty_window),
        cmocka_unit_test(test_offered_anew_while_in_use),
        cmocka_unit_test(test_another_segment),
        cmocka_unit_test(test_no_table),
        cmocka_unit_test(test_limit_of_descriptors),
        cmocka_unit_test(test_a_late_peer),
        cmocka_unit_test(test_rare_losses_are_forgotten),
    };
    return hier::test::run_cases(argc, argv, "vmm_exports", tests);
}
