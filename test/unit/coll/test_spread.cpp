// SPDX-License-Identifier: BSD-3-Clause
// Which shards are spread, and that every byte of them has one carrier.
#include <vector>

#include "coll/allgather/spread.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;

constexpr std::size_t mib = 1 << 20;
// Copy engines at 400 GB/s.
constexpr SpreadCosts engines{.unit = 4 * mib, .start = 6 * mib};

Topology nodes_of(std::initializer_list<int> sizes)
{
    std::vector<int> node_of_rank;
    int node = 0;
    for (const int ranks : sizes) {
        node_of_rank.insert(node_of_rank.end(), static_cast<std::size_t>(ranks), node);
        node++;
    }
    return Topology(node_of_rank);
}

std::vector<Extent> shards_of(const std::vector<std::size_t>& lengths)
{
    std::vector<Extent> shards;
    std::size_t end = 0;
    for (const std::size_t length : lengths) {
        shards.push_back({end, length});
        end += length;
    }
    return shards;
}

bool is_ring(const Topology& topology, const std::vector<std::size_t>& lengths)
{
    return AllgatherSpread(topology, shards_of(lengths), engines).ring_chunk() > 0;
}

void test_ring(void**)
{
    const Topology node = nodes_of({4});
    const std::size_t gib = 1024 * mib;
    assert_true(is_ring(node, {gib, 2 * gib, 3 * gib, 4 * gib}));
    assert_true(is_ring(node, {0, 0, gib, 0}));
    assert_false(is_ring(node, {0, 0, 8 * mib, 0}));  // too small for so many hops
    // What a block distribution gives to ranks differs by a little. Pushes to all are the fastest.
    assert_false(is_ring(node, {gib, gib, gib, gib}));
    assert_false(is_ring(node, {gib, gib + 1, gib + 1, gib}));
    assert_false(is_ring(node, {gib, gib, gib, gib - mib}));
    assert_false(is_ring(nodes_of({2}), {gib, 0}));
    assert_false(is_ring(nodes_of({2, 2}), {gib, 0, 0, 0}));
}

void test_handovers(void**)
{
    const Topology topology = nodes_of({3, 2});
    const auto shards = shards_of({100 * mib, 0, 5 * mib, 40 * mib, 41 * mib});
    const AllgatherSpread spread(topology, shards, engines);
    std::size_t carried[5] = {};
    for (const Handover& h : spread.handovers(0)) {
        assert_int_equal(h.owner, 0);
        assert_int_equal(h.part.length % engines.unit, 0);
        carried[h.carrier] += h.part.length;
    }
    const Extent kept = spread.kept(0);
    assert_int_equal(kept.offset, 0);
    assert_int_equal(kept.length + carried[1] + carried[2], 100 * mib);
    // Both carriers and the owner round to units.
    assert_true(kept.length <= 35 * mib + 3 * engines.unit);
    assert_true(carried[1] <= 35 * mib && 5 * mib + carried[2] <= 35 * mib);
    // The parts lie side by side behind what is kept.
    std::size_t end = 100 * mib;
    for (const Handover& h : spread.handovers(0)) {
        assert_int_equal(h.part.offset + h.part.length, end);
        end = h.part.offset;
    }
    assert_int_equal(end, kept.length);
    // Shards of the other node are nearly alike.
    assert_int_equal(spread.handovers(1).size(), 0);
    assert_true(spread.kept(3) == shards[3] && spread.kept(4) == shards[4]);
}

void test_nothing_is_spread(void**)
{
    const auto shards = shards_of({100 * mib, 0, 0, 0});
    const AllgatherSpread spread(nodes_of({2, 2}), shards, {});
    assert_true(spread.kept(0) == shards[0]);
    assert_int_equal(spread.handovers(0).size(), 0);
    assert_int_equal(spread.ring_chunk(), 0);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_handovers),
        cmocka_unit_test(test_nothing_is_spread),
    };
    return hier::test::run_cases(argc, argv, "spread", tests);
}
