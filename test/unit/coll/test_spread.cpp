// SPDX-License-Identifier: BSD-3-Clause
// Which shards are spread, and that every byte of them has one carrier.
#include <algorithm>
#include <string>
#include <vector>

#include "coll/allgather/allgather.hpp"
#include "coll/allgather/spread.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;

constexpr std::size_t mib = 1 << 20;
// Copy engines at 400 GB/s.
constexpr SpreadCosts engines{.unit = 4 * mib, .start = 6 * mib};

// Cores at 10 GB/s.
constexpr SpreadCosts cores{
    .unit = 96 << 10, .start = 100 << 10, .put = 15 << 10, .grain = 4096, .by_cores = true};

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
    assert_true(is_ring(node, {0, 0, 4 * gib, 0}));
    assert_true(is_ring(nodes_of({8}), {0, 0, gib, 0, 0, 0, 0, 0}));
    assert_false(is_ring(node, {gib, 2 * gib, 3 * gib, 4 * gib}));  // balanced
    assert_false(is_ring(node, {0, 0, 8 * mib, 0}));                // too small for so many hops
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

std::vector<std::size_t> one_of(std::size_t ranks, std::size_t bytes)
{
    std::vector<std::size_t> lengths(ranks);
    lengths[1] = bytes;
    return lengths;
}

std::vector<std::size_t> growing(std::size_t ranks, std::size_t bytes)
{
    std::vector<std::size_t> lengths;
    for (std::size_t r = 1; r <= ranks; r++)
        lengths.push_back(2 * bytes * r / (ranks * (ranks + 1)));
    return lengths;
}

enum class Way { plain, balanced, carriers, ring };

Way way_of(const std::vector<std::size_t>& lengths, const SpreadCosts& costs)
{
    const Topology node = nodes_of({static_cast<int>(lengths.size())});
    const AllgatherSpread spread(node, shards_of(lengths), costs);
    return spread.ring_chunk() > 0        ? Way::ring
           : !spread.turns().empty()      ? Way::balanced
           : !spread.handovers(0).empty() ? Way::carriers
                                          : Way::plain;
}

void test_way_on_a_node(void**)
{
    constexpr std::size_t kib = 1 << 10;
    assert_true(way_of(one_of(16, 4 * kib), cores) == Way::plain);
    assert_true(way_of(one_of(16, 64 * kib), cores) == Way::carriers);
    assert_true(way_of(one_of(16, mib), cores) == Way::carriers);
    assert_true(way_of(one_of(16, 256 * mib), cores) == Way::ring);
    assert_true(way_of(growing(16, 256 * mib), cores) == Way::ring);
    constexpr SpreadCosts gpus{
        .unit = 4 * mib, .start = 6 * mib, .put = 200 * kib, .grain = 4096, .by_cores = false};
    assert_true(way_of(one_of(4, 4 * mib), gpus) == Way::plain);
    assert_true(way_of(one_of(4, 64 * mib), gpus) != Way::plain);
    assert_true(way_of(one_of(4, 4096 * mib), gpus) == Way::ring);
    assert_true(way_of(growing(4, 4 * mib), gpus) == Way::plain);
    assert_true(way_of(growing(4, 64 * mib), gpus) == Way::balanced);
    assert_true(way_of(growing(8, 1024 * mib), gpus) == Way::balanced);
    for (const std::size_t ranks : {2u, 3u, 16u}) {
        const std::vector<std::size_t> equal(ranks, mib);
        assert_true(way_of(equal, cores) == Way::plain);
        assert_true(way_of(equal, gpus) == Way::plain);
    }
}

// The bytes that each rank of a node sends, or a reason why a byte has not one sender.
std::string bytes_sent(const std::vector<std::size_t>& lengths, const AllgatherSpread& spread,
                       std::vector<std::size_t>& sent)
{
    const std::size_t peers = lengths.size() - 1;
    const auto shards = shards_of(lengths);
    sent.assign(lengths.size(), 0);
    std::vector<std::size_t> ends;
    for (std::size_t r = 0; r < lengths.size(); r++) {
        const Extent kept = spread.kept(static_cast<int>(r));
        if (kept.offset != shards[r].offset) return "the first bytes are not kept";
        ends.push_back(kept.offset + kept.length);
        sent[r] = peers * kept.length;
    }
    for (const Handover& h : spread.handovers(0)) {
        const auto owner = static_cast<std::size_t>(h.owner);
        const auto carrier = static_cast<std::size_t>(h.carrier);
        if (h.part.offset != ends[owner]) return "a gap before a part";
        if (h.part.length == 0) return "an empty part";
        if (spread.kept(h.carrier).length < lengths[carrier]) return "an owner that carries";
        ends[owner] += h.part.length;
        sent[owner] += h.part.length;
        sent[carrier] += (peers - 1) * h.part.length;
    }
    for (std::size_t r = 0; r < lengths.size(); r++)
        if (ends[r] != shards[r].offset + lengths[r]) return "bytes that nobody sends";
    return "";
}

const char* carriers_share_the_work()
{
    std::vector<std::size_t> among_small(16, 8 << 10), two(16);
    among_small[7] = mib;
    two[3] = two[12] = mib;
    const std::vector<std::vector<std::size_t>> calls = {
        one_of(16, 64 << 10),   one_of(16, mib), one_of(4, mib / 2),
        one_of(5, mib / 4 + 1), among_small,     two};
    for (const auto& lengths : calls) {
        const Topology node = nodes_of({static_cast<int>(lengths.size())});
        const AllgatherSpread spread(node, shards_of(lengths), cores);
        if (spread.handovers(0).empty()) return "nothing is handed over";
        std::vector<std::size_t> sent;
        const std::string why = bytes_sent(lengths, spread, sent);
        if (!why.empty()) return hier::test::keep(why);
        const std::size_t plain =
            (lengths.size() - 1) * *std::max_element(lengths.begin(), lengths.end());
        for (const std::size_t bytes : sent)
            if (bytes > plain / 4 * 3) return "a rank that sends too much";
    }
    return nullptr;
}

void test_carriers(void**) { hier::test::expect_no_reason(carriers_share_the_work()); }

const char* balanced_ranks_push_as_much()
{
    constexpr std::size_t grain = 4096;
    constexpr SpreadCosts gpus{.unit = 4 * mib, .start = 6 * mib, .grain = grain};
    const std::vector<std::vector<std::size_t>> calls = {
        one_of(4, 64 * mib),
        growing(4, 64 * mib),
        growing(8, 256 * mib),
        {90 * mib, 5 * mib + 1, 0, 70 * mib - 1, 3 * mib}};
    for (const auto& lengths : calls) {
        const Topology node = nodes_of({static_cast<int>(lengths.size())});
        const AllgatherSpread spread(node, shards_of(lengths), gpus);
        if (spread.turns().size() != lengths.size()) return "not balanced";
        std::vector<std::size_t> pushed, all(lengths);
        for (std::size_t r = 0; r < lengths.size(); r++)
            pushed.push_back(spread.kept(static_cast<int>(r)).length);
        for (const Handover& h : spread.handovers(0)) {
            pushed[static_cast<std::size_t>(h.carrier)] += h.part.length;
            all[static_cast<std::size_t>(h.owner)] -= h.part.length;
        }
        for (std::size_t r = 0; r < lengths.size(); r++)
            if (all[r] != spread.kept(static_cast<int>(r)).length) return "bytes are lost";
        const auto [least, most] = std::minmax_element(pushed.begin(), pushed.end());
        if (*most - *least > lengths.size() * grain) return "ranks do not push as much";
    }
    return nullptr;
}

void test_balanced(void**) { hier::test::expect_no_reason(balanced_ranks_push_as_much()); }

void test_nothing_is_spread(void**)
{
    const auto shards = shards_of({100 * mib, 0, 0, 0});
    const AllgatherSpread spread(nodes_of({2, 2}), shards, {});
    assert_true(spread.kept(0) == shards[0]);
    assert_int_equal(spread.handovers(0).size(), 0);
    assert_int_equal(spread.ring_chunk(), 0);
}

// Memory that all ranks of a node share takes a block once for all of them.
void test_shared_memory_needs_no_carriers(void**)
{
    const Topology node = nodes_of({4});
    const std::vector<Extent> shards = shards_of({0, 0, 8 * mib, 0});
    Rates rates{.nic = 1e9, .link = 5e9, .own = 5e9};
    const auto puts_of_others = [&] {
        const Allgather allgather(node, rates);
        const Choice choice = allgather.choose(8 * mib, {});
        const Plan plan = allgather.plan(
            {.rank = 0, .bytes = 8 * mib, .stride = 8 * mib, .blocks = shards, .choice = choice});
        return std::count_if(plan.ops.begin(), plan.ops.end(),
                             [](const Op& op) { return op.kind == Op::Kind::put; });
    };
    assert_true(puts_of_others() > 0);
    rates.shared_result = 8 * mib - 1;
    assert_true(puts_of_others() > 0);
    rates.shared_result = 8 * mib;
    assert_int_equal(puts_of_others(), 0);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_shared_memory_needs_no_carriers),
        cmocka_unit_test(test_handovers),
        cmocka_unit_test(test_way_on_a_node),
        cmocka_unit_test(test_carriers),
        cmocka_unit_test(test_balanced),
        cmocka_unit_test(test_nothing_is_spread),
    };
    return hier::test::run_cases(argc, argv, "spread", tests);
}
