// SPDX-License-Identifier: BSD-3-Clause
// The memory that the ranks of a node share: how much it is, and that no two things lie in the same
// bytes.
#include <algorithm>
#include <map>
#include <string>

#include "base/error.hpp"
#include "node/host/node_publish.hpp"
#include "node/node_segment.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t mib = 1 << 20;

std::size_t bytes_of(int ranks, bool has_cma, bool have_devices = false, bool share_cores = false)
{
    return NodeLayout({.ranks = ranks,
                       .have_devices = have_devices,
                       .share_cores = share_cores,
                       .has_cma = has_cma})
        .bytes;
}

// Any communicator of up to 256 ranks on a node, whatever its ranks use.
void test_many_ranks_share_little(void**)
{
    for (const int ranks : {65, 96, 128, 192, 255, 256}) {
        for (int kind = 0; kind < 8; kind++) {
            const std::size_t bytes =
                bytes_of(ranks, (kind & 1) != 0, (kind & 2) != 0, (kind & 4) != 0);
            assert_true(bytes <= 4 * mib);
            assert_true(bytes > 2 * mib);
        }
    }
}

// Cells and halves are as large as they were measured to be best.
void test_few_ranks_share_what_is_fast(void**)
{
    struct {
        int ranks;
        std::size_t count, bytes;  // KiB
    } const cells[] = {{2, 4, 16}, {3, 4, 64}, {8, 8, 32}, {16, 4, 32}, {64, 4, 32}};
    for (const auto& c : cells) {
        const NodeLayout layout({.ranks = c.ranks, .has_cma = true});
        assert_int_equal(layout.cells.count, c.count);
        assert_int_equal(layout.cells.bytes, c.bytes << 10);
        assert_int_equal(layout.half, 32 << 10);
        assert_int_equal(layout.signal_stride, cache_line);
    }
    assert_int_equal(NodeLayout({.ranks = 2}).cells.bytes, 64 << 10);
    assert_int_equal(NodeLayout({.ranks = 8, .have_devices = true}).cells.bytes, 64 << 10);
    assert_true(bytes_of(8, true) < 3 * mib);
}

// A single node publishes larger blocks of host memory, if it has room for them. Other nodes push them.
void test_a_single_node_publishes_more(void**)
{
    struct Case {
        int ranks, team;
        bool share_cores, has_cma;
        std::size_t usual, skewed;  // KiB
    };
    for (const Case& c : {Case{2, 2, false, true, 8, 8}, Case{2, 2, false, false, 16, 16},
                          Case{2, 2, true, true, 16, 16}, Case{3, 3, false, true, 64, 128},
                          Case{4, 4, false, true, 64, 128}, Case{4, 4, true, true, 16, 16},
                          Case{6, 6, false, true, 64, 128}, Case{6, 6, false, false, 64, 128},
                          Case{16, 16, false, true, 64, 128}, Case{33, 33, false, true, 60, 60},
                          Case{64, 64, false, true, 32, 32}, Case{65, 65, false, true, 16, 16},
                          Case{6, 12, false, true, 16, 16}}) {
        NodeNeeds needs{.ranks = c.ranks, .blocks = c.team, .share_cores = c.share_cores};
        needs.has_cma = c.has_cma;
        assert_int_equal(needs.max_published(false), c.usual << 10);
        assert_int_equal(needs.max_published(true), c.skewed << 10);
        needs.have_devices = true;
        assert_int_equal(needs.max_published(true), 16 << 10);
        needs = {.ranks = c.ranks, .blocks = c.team, .has_areas = false};
        assert_int_equal(needs.max_published(true), 16 << 10);
    }
    const NodeNeeds slow{.ranks = 2, .blocks = 2, .has_cma = true, .is_cma_slow = true};
    assert_int_equal(slow.max_published(false), 16 << 10);
    for (int ranks = 2; ranks <= 64; ranks++) {
        const NodeNeeds needs{
            .ranks = ranks, .blocks = ranks, .has_cma = true, .is_cma_slow = ranks < 6};
        const NodeLayout layout(needs);
        const std::size_t largest = std::max(needs.max_published(false), needs.max_published(true));
        assert_true(layout.half >= NodePublish::space_for(1, largest) + cache_line);
        assert_int_equal(layout.half % cache_line, 0);
        assert_true(static_cast<std::size_t>(ranks) * layout.half <= 5 * mib / 2);
    }
}

// Every number of ranks, also far above what fits into 4 MiB.
void test_it_always_works(void**)
{
    for (int ranks = 2; ranks <= 1100; ranks += ranks < 80 ? 1 : 51) {
        for (const bool have_devices : {false, true}) {
            const NodeLayout layout({.ranks = ranks, .have_devices = have_devices});
            assert_true(layout.cells.count >= 4 && layout.cells.bytes >= 256);
            assert_true(layout.half >= 1 << 10);
        }
    }
}

// All things of a segment: their first byte, and their bytes.
class Parts {
public:
    void add(const void* at, std::size_t bytes)
    {
        if (!parts_.emplace(static_cast<const std::byte*>(at), bytes).second) twice_ = true;
    }
    const char* overlap(const std::byte* begin, std::size_t bytes) const
    {
        const std::byte* end = begin;
        for (const auto& [at, length] : parts_) {
            if (at < end) return "two things share bytes";
            end = at + length;
        }
        if (end > begin + bytes) return "a thing lies behind the end";
        return twice_ ? "two things begin at the same byte" : nullptr;
    }

private:
    std::map<const std::byte*, std::size_t> parts_;
    bool twice_ = false;
};

const char* overlap_of(int ranks, bool have_devices)
{
    const NodeLayout layout({.ranks = ranks, .have_devices = have_devices});
    SharedMemory memory = SharedMemory::create_anonymous(layout.bytes);
    const std::byte* const begin = memory.data();
    const NodeSegment segment(0, layout, std::move(memory));
    Parts parts;
    parts.add(&segment.failure(), sizeof(int));
    for (int a = 0; a < ranks; a++) {
        parts.add(&segment.slot(a), sizeof(NodeSlot));
        parts.add(segment.area(a), layout.area_stride);
        for (int b = 0; b < ranks; b++) {
            parts.add(&segment.signal_by_cpu(a, b), 8);
            if (have_devices) parts.add(&segment.signal_by_device(a, b), 8);
            const RingTable& rings = layout.cell_rings;
            const auto pair = static_cast<std::size_t>(a * ranks + b);
            parts.add(begin + rings.sender_at + pair * rings.sender_stride,
                      EntryRing<CellEntry>::sender_bytes(rings.length));
            parts.add(begin + rings.receiver_at + pair * rings.receiver_stride, 8);
        }
    }
    return parts.overlap(begin, layout.bytes);
}

void test_nothing_overlaps(void**)
{
    for (const int ranks : {2, 5, 64, 65, 100}) {
        for (const bool have_devices : {false, true})
            expect_no_reason(overlap_of(ranks, have_devices));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_many_ranks_share_little),
        cmocka_unit_test(test_few_ranks_share_what_is_fast),
        cmocka_unit_test(test_a_single_node_publishes_more),
        cmocka_unit_test(test_it_always_works),
        cmocka_unit_test(test_nothing_overlaps),
    };
    return hier::test::run_cases(argc, argv, "node_layout", tests);
}
