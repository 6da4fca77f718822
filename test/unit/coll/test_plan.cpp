// SPDX-License-Identifier: BSD-3-Clause
// The bytes on the wires and the operations of plans. The model shows that plans are right.
#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hier/plan.hpp"
#include "test/support/machine.hpp"
#include "test/support/team.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// ---- bytes

// Into a node goes every byte of the others once, which is the minimum. Out of a node go its own
// bytes to every other node (direct), or all but those of the next node to that node (ring).
std::string fault_of_rail_bytes(const Team& team)
{
    const Topology& t = team.topology;
    std::vector<std::size_t> in(static_cast<std::size_t>(t.nodes())), out(in);
    for_each_op(team, Op::Kind::put, [&](int r, const Op& op) {
        if (op.level != Level::rail) return;
        out[static_cast<std::size_t>(t.node_of(r))] += op.slice.length;
        in[static_cast<std::size_t>(t.node_of(op.peer))] += op.slice.length;
    });
    for (int n = 0; n < t.nodes(); n++) {
        const auto i = static_cast<std::size_t>(n);
        const std::size_t all = bytes_of_all(team);
        const std::size_t own = bytes_of_node(team, n);
        const std::size_t next = bytes_of_node(team, (n + 1) % t.nodes());
        const auto others = static_cast<std::size_t>(t.nodes() - 1);
        const std::size_t min_out = team.route == Route::ring ? all - next : others * own;
        if (in[i] != all - own) return "not the least bytes into node " + std::to_string(n);
        if (out[i] != min_out) return "not the least bytes out of node " + std::to_string(n);
    }
    return "";
}

// Inside the node a rank gets the bytes that are not its own and did not come over its rail.
std::string fault_of_node_bytes(const Team& team)
{
    const auto by_rail = bytes_put_to(team, Level::rail);
    const auto by_node = bytes_put_to(team, Level::node);
    for (std::size_t r = 0; r < by_node.size(); r++) {
        if (by_node[r] + by_rail[r] + team.shards[r].length != bytes_of_all(team)) {
            return "not every byte comes to rank " + std::to_string(r) + " once";
        }
    }
    return "";
}

const char* bytes_are_least_everywhere()
{
    for (int ranks = 1; ranks <= 6; ranks++) {
        for (const auto& nodes : every_machine(ranks)) {
            for (const Route route : all_routes) {
                const Team team = team_of(nodes, equal_shards(ranks, 7), 3, route);
                std::string fault = fault_of_rail_bytes(team);
                if (fault.empty()) fault = fault_of_node_bytes(team);
                if (!fault.empty()) return keep(fault + ", nodes of ranks: " + text_of(nodes));
            }
        }
    }
    return nullptr;
}

void test_bytes(void**) { expect_no_reason(bytes_are_least_everywhere()); }

using Bytes = std::vector<std::size_t>;

std::string fault_of_rail_bytes(const char* text, Route route, const Bytes& expected)
{
    const Bytes bytes = bytes_put_to(team_of(text, 1, 1, route), Level::rail);
    if (bytes == expected) return "";
    std::string out = std::string(text) + " takes from its rails";
    for (const std::size_t b : bytes) out += " " + std::to_string(b);
    return out;
}

// With shards of one byte: the bytes that come over the rail of each rank.
const char* rail_bytes_of_single_machines()
{
    for (const Route route : {Route::direct, Route::ring}) {
        std::string fault = fault_of_rail_bytes("2,2", route, {1, 1, 1, 1});
        if (fault.empty()) fault = fault_of_rail_bytes("2,2,2", route, {2, 2, 2, 2, 2, 2});
        if (fault.empty()) fault = fault_of_rail_bytes("1,2,1", route, {3, 1, 1, 3});
        if (fault.empty()) fault = fault_of_rail_bytes("1,1", route, {1, 1});
        if (!fault.empty()) return keep(fault);
    }
    return nullptr;
}

void test_bytes_of_single_machines(void**) { expect_no_reason(rail_bytes_of_single_machines()); }

// ---- operations

bool puts_are(const char* text, Route route, std::size_t on_rail, std::size_t on_node)
{
    const Team team = team_of(text, 10, 4, route);  // three chunks
    for (int r = 0; r < team.topology.size(); r++) {
        if (count(team, Op::Kind::put, Level::rail, r) != on_rail) return false;
        if (count(team, Op::Kind::put, Level::node, r) != on_node) return false;
    }
    return true;
}

// Three chunks a shard. Equal nodes: (N-1) * chunks on the rail of each rank, (G-1) * N * chunks
// inside its node.
void test_puts_per_rank(void**)
{
    for (const Route route : {Route::direct, Route::ring}) {
        assert_true(puts_are("1", route, 0, 0));
        assert_true(puts_are("4", route, 0, 9));
        assert_true(puts_are("1,1,1", route, 6, 0));
        assert_true(puts_are("2,2", route, 3, 6));
        assert_true(puts_are("3,3,3", route, 6, 18));
        assert_true(puts_are("4,4", route, 3, 18));
    }
}

std::size_t ops_of_one_rank(bool in_place)
{
    return team_of("1", 10, 16, Route::direct, in_place).plans[0].ops.size();
}

void test_one_rank_only_copies(void**)
{
    assert_int_equal(ops_of_one_rank(false), 1);
    assert_int_equal(ops_of_one_rank(true), 0);
}

std::size_t ops_on(const char* text, Level level)
{
    std::size_t n = 0;
    for (const Plan& plan : team_of(text, 10, 4, Route::direct, true).plans) {
        for (const Op& op : plan.ops) n += op.level == level ? 1 : 0;
    }
    return n;
}

void test_levels_that_are_not_there(void**)
{
    assert_int_equal(ops_on("4", Level::rail), 0);
    assert_int_equal(ops_on("1,1,1", Level::node), 0);
}

const char* chunks_cut_each_shard()
{
    for (const std::size_t chunk :
         {std::size_t{1}, std::size_t{3}, std::size_t{7}, std::size_t{8}}) {
        const Team team = team_of("2,2", 7, chunk, Route::direct);
        std::size_t longest = 0;
        std::map<std::pair<int, int>, std::set<std::size_t>> starts;
        for_each_op(team, Op::Kind::put, [&](int r, const Op& op) {
            longest = std::max(longest, op.slice.length);
            starts[{r, op.peer}].insert(op.slice.target);
        });
        if (longest != std::min<std::size_t>(chunk, 7)) return "the longest put is not one chunk";
        for (const auto& [pair, offsets] : starts) {
            const bool same_node =
                team.topology.node_of(pair.first) == team.topology.node_of(pair.second);
            // Inside the node: the own shard and the one that came in.
            if (offsets.size() != (same_node ? 2 : 1) * ((7 + chunk - 1) / chunk)) {
                return "a pair does not carry one put for each chunk";
            }
        }
    }
    return nullptr;
}

void test_chunks(void**) { expect_no_reason(chunks_cut_each_shard()); }

// Shards of ten bytes, chunks of four, nodes of two: a rank pushes its own shard whole, and three
// chunks of a remote shard.
bool own_shards_are_whole_on_request(bool copy_whole)
{
    const Topology topology(machine("2,2"));
    const auto shards = equal_shards(4, 10);
    const Plan plan = plan_allgather(topology, 0,
                                     {.shards = shards,
                                      .chunk = 4,
                                      .route = Route::direct,
                                      .in_place = false,
                                      .bounce = false,
                                      .own_whole = true,
                                      .copy_whole = copy_whole});
    std::vector<Extent> pushes, copies;
    std::uint32_t awaited = 0, on_rail = 0;
    for (const Op& op : plan.ops) {
        const bool is_put = op.kind == Op::Kind::put;
        if (is_put && op.level == Level::node) pushes.push_back(target_of(op));
        if (op.kind == Op::Kind::copy) copies.push_back(target_of(op));
        if (op.kind == Op::Kind::await_data && op.level == Level::node) awaited = op.count;
        on_rail += is_put && op.level == Level::rail ? 1 : 0;
    }
    const std::vector<Extent> wanted{{0, 10}, {20, 4}, {24, 4}, {28, 2}};
    const std::vector<Extent> cut{{0, 4}, {4, 4}, {8, 2}}, whole{{0, 10}};
    return pushes == wanted && copies == (copy_whole ? whole : cut) && awaited == 4 && on_rail == 3;
}

void test_own_shards_whole(void**)
{
    assert_true(own_shards_are_whole_on_request(true));
    assert_true(own_shards_are_whole_on_request(false));
}

// ---- empty shards

bool nothing_moves()
{
    for (const Route route : all_routes) {
        const Team team = team_of("2,3,1", 0, 4, route);
        for (const auto kind :
             {Op::Kind::copy, Op::Kind::put, Op::Kind::await_data, Op::Kind::drain}) {
            if (count(team, kind) != 0) return false;
        }
    }
    return true;
}

bool one_empty_shard_is_left_out()
{
    for (const Route route : all_routes) {
        auto shards = equal_shards(4, 4);
        shards[1].length = 0;
        const Team team = team_of(machine("2,2"), shards, 4, route);
        bool seen = false;
        for_each_op(team, Op::Kind::put, [&](int, const Op& op) {
            seen = seen || op.slice.length == 0 || op.slice.target == shards[1].offset;
        });
        if (seen || count(team, Op::Kind::copy) != 3) return false;
    }
    return true;
}

void test_empty_shards(void**)
{
    assert_true(nothing_moves());
    assert_true(one_empty_shard_is_left_out());
}

bool shards_are_in_rank_order()
{
    return equal_shards(3, 5) == std::vector<Extent>{{0, 5}, {5, 5}, {10, 5}} &&
           equal_shards(0, 5).empty();
}

void test_equal_shards(void**) { assert_true(shards_are_in_rank_order()); }

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_bytes_of_single_machines),
        cmocka_unit_test(test_puts_per_rank),
        cmocka_unit_test(test_one_rank_only_copies),
        cmocka_unit_test(test_levels_that_are_not_there),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_own_shards_whole),
        cmocka_unit_test(test_empty_shards),
        cmocka_unit_test(test_equal_shards),
    };
    return hier::test::run_cases(argc, argv, "plan", tests);
}
