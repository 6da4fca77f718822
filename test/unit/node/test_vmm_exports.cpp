// SPDX-License-Identifier: BSD-3-Clause
// One process tells another of its VMM segments: again, too late, or in vain.
#include <sys/resource.h>

#include "node/device/peer_vmm_segments.hpp"
#include "node/device/vmm_exports.hpp"
#include "test/support/engine_rank.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::uint64_t step = PeerVmmSegments::window_bytes / 2;

// Rank 1 tells of its memory, and rank 0 maps it, without a call of a team.
class Direct {
public:
    explicit Direct(const ForkedRank& self)
        : group_(self.group()), is_owner(self.rank() == 1),
          processes_(group_.collect(NodeSocket::instance().address()))
    {
    }
    // Both ranks call this. False: rank 1 has not told, or rank 0 cannot map.
    bool acquire(std::byte* memory, std::size_t bytes)
    {
        bool is_there = !is_owner || share(memory, bytes);
        const PeerVmmSegments::Range range = group_.collect(range_)[1];
        if (!is_owner)
            is_there = PeerVmmSegments::instance().acquire(processes_[1], range, 0, window, at) ==
                       Status::ok;
        meet();
        return is_there;
    }
    bool share(std::byte* memory, std::size_t bytes)
    {
        range_ = {reinterpret_cast<std::uint64_t>(memory), bytes, 0};
        PeerVmmSegments::instance().listen(1);
        return VmmExports::instance().share({memory, bytes, allocation_of(memory)}, processes_,
                                            range_.digest);
    }
    void release() const
    {
        if (!is_owner) PeerVmmSegments::instance().release(window);
    }
    // Sends messages until rank 0's socket is full.
    void fill_queue() const
    {
        const NodeSocket::Entry nothing{};
        while (NodeSocket::instance().send(processes_[0], NodeSocket::What::unmapped, {&nothing, 1},
                                           {})) {
        }
    }
    void lose() const
    {
        (void)NodeSocket::instance().send(processes_[1], NodeSocket::What::lost, {}, {});
    }
    void meet() const { (void)group_.collect(0); }

private:
    Group group_;

public:
    bool is_owner;
    PeerVmmSegments::Window* window = nullptr;
    std::byte* at = nullptr;

private:
    std::vector<NodeSocket::Address> processes_;
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

// A call still uses the segments when they are told again.
void test_told_anew_while_in_use(void**)
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
        PeerVmmSegments::instance().listen(0);
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

// While the socket is full nothing new is told. Old memory comes free later.
void test_a_full_queue(void**)
{
    expect_no_reason(run(2, "0", [](ForkedRank& self) -> std::string {
        Direct pair(self);
        std::byte* const base = pair.is_owner ? mapped_memory(2, 1) : nullptr;
        if (!pair.acquire(base, segment_bytes)) return "not there";
        pair.release();
        if (pair.is_owner) {
            pair.fill_queue();
            unmap_segment(base);
            map_segment(base, 1);
            put(base, content(1, 2, segment_bytes));
            VmmExports::instance().look_after();  // the message does not get through
        }
        if (pair.acquire(base, segment_bytes)) return "told, or mapped, nevertheless";
        PeerVmmSegments::instance().listen(0);
        pair.meet();
        if (pair.is_owner) VmmExports::instance().look_after();
        pair.meet();
        PeerVmmSegments::instance().listen(0);
        const bool is_held = !pair.is_owner && hip_sim_live("handles") != 0;
        pair.meet();
        if (is_held) return "the old segment is still held";
        if (!pair.acquire(base, segment_bytes)) return "not there any more";
        const bool is_right =
            pair.is_owner || get(pair.at, segment_bytes) == content(1, 2, segment_bytes);
        pair.meet();
        return is_right ? "" : "the old segment";
    }));
}

// Processes without sockets cannot be told. Both have the same address.
void test_no_sockets(void**)
{
    expect_no_reason(run(2, "0", [](ForkedRank& self) -> std::string {
        rlimit limit{};
        if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return "no limit";
        const rlimit none{0, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &none) != 0) return "no other limit";
        (void)NodeSocket::instance();
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return "the limit stays";
        Direct pair(self);
        std::byte* const base = pair.is_owner ? mapped_memory(1, 1) : nullptr;
        return pair.is_owner && pair.share(base, segment_bytes) ? "told" : "";
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
            const NodeSocket::Address self_only = NodeSocket::instance().address();
            for (int k = 0; k < rarely && pair.is_owner; k++) {
                PeerVmmSegments::instance().listen(1);
                (void)VmmExports::instance().share({base, 1, allocation_of(base)}, {&self_only, 1},
                                                   digest);
            }
        }
        const NodeSocket::Entry first{step - 100, 200, 1};
        const NodeSocket::Entry near{step + PeerVmmSegments::window_bytes - 100, 100, 2};
        const NodeSocket::Entry far{step + PeerVmmSegments::window_bytes, 100, 2};
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
        cmocka_unit_test(test_told_anew_while_in_use),
        cmocka_unit_test(test_a_full_queue),
        cmocka_unit_test(test_no_sockets),
        cmocka_unit_test(test_rare_losses_are_forgotten),
    };
    return hier::test::run_cases(argc, argv, "vmm_exports", tests);
}
