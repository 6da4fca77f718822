// SPDX-License-Identifier: BSD-3-Clause
// The peers in the plans of a team, and their order. Both ends of a pair agree.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "coll/allgather/routing.hpp"
#include "coll/registry.hpp"
#include "hier/plan.hpp"
#include "test/support/machine.hpp"
#include "test/support/team.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// ---- routes

// How often each rank puts its own shard on the rail, and how often others pass it on.
std::string fault_of_hops(const char* text, Route route)
{
    const Team team = team_of(text, 1, 1, route);
    const Topology& t = team.topology;
    std::vector<int> first(team.plans.size()), passed(team.plans.size());
    std::string fault;
    for_each_op(team, Op::Kind::put, [&](int r, const Op& op) {
        if (op.level != Level::rail) return;
        (op.slice.target == static_cast<std::size_t>(r) ? first : passed)[op.slice.target]++;
        if (route == Route::ring && t.node_of(op.peer) != (t.node_of(r) + 1) % t.nodes()) {
            fault = "a ring does not go to the next node";
        }
    });
    for (std::size_t r = 0; r < first.size(); r++) {
        if (first[r] + passed[r] != t.nodes() - 1) fault = "a shard does not make N-1 hops";
        if (first[r] != (route == Route::direct ? t.nodes() - 1 : 1)) fault = "wrong first hops";
    }
    return fault;
}

const char* hops_are_right()
{
    for (const char* text : {"2,2", "1,1,1", "2,2,2", "3,1,2", "1,1,1,1,1"}) {
        for (const Route route : {Route::direct, Route::ring}) {
            const auto fault = fault_of_hops(text, route);
            if (!fault.empty()) return keep(std::string(text) + ": " + fault);
        }
    }
    return nullptr;
}

void test_hops(void**) { expect_no_reason(hops_are_right()); }

// The partners are exactly the rail peers that a rank's plans name, for any route.
std::string fault_of_partners(const char* text)
{
    const Topology topology = team_of(text, 1, 1, Route::direct).topology;
    std::vector<std::set<int>> named(static_cast<std::size_t>(topology.size()));
    for (const Route route : all_routes) {
        const Team team = team_of(text, 1, 1, route);
        for (int r = 0; r < topology.size(); r++) {
            for (const Op& op : team.plans[static_cast<std::size_t>(r)].ops)
                if (op.level == Level::rail) named[static_cast<std::size_t>(r)].insert(op.peer);
        }
    }
    for (int r = 0; r < topology.size(); r++) {
        const auto members = topology.ranks_on_rail(topology.rail_of(r));
        const auto partners = rail_partners(topology, r);
        std::set<int> found;
        for (std::size_t i = 0; i < members.size(); i++) {
            if (!partners[i]) continue;
            found.insert(members[i]);
            const auto theirs = rail_partners(topology, members[i]);
            if (!theirs[static_cast<std::size_t>(topology.rail_index_of(r))]) return "one-sided";
        }
        if (found != named[static_cast<std::size_t>(r)]) return "rank " + std::to_string(r);
    }
    return "";
}

void test_partners(void**)
{
    for (const char* text : {"2,2", "1,1,1", "3,1", "1,3", "4,2,1", "3,1,2", "5,3,3,3", "2,3,4,5",
                             "8,8,8,1", "1,1,1,7,1", "4,4,4,4"}) {
        const auto fault = fault_of_partners(text);
        expect_no_reason(keep(fault.empty() ? "" : std::string(text) + ": " + fault));
    }
}

// A last node with a single rank makes one rail of all ranks. They still exchange data with few.
void test_few_partners(void**)
{
    const Topology topology = team_of("8,8,8,1", 1, 1, Route::direct).topology;
    assert_int_equal(topology.rails(), 1);
    for (int r = 0; r < 24; r++) {
        const auto partners = rail_partners(topology, r);
        assert_true(std::count(partners.begin(), partners.end(), true) <= 5);
    }
}

// ---- order

// The peers to which a rank puts its own shard, in plan order, each once.
std::vector<int> peers_in_order(const Team& team, int rank, Level level)
{
    std::vector<int> peers;
    for (const Op& op : team.plans[static_cast<std::size_t>(rank)].ops) {
        const bool own = op.slice.target == team.shards[static_cast<std::size_t>(rank)].offset;
        if (op.kind != Op::Kind::put || op.level != level || !own) continue;
        if (std::find(peers.begin(), peers.end(), op.peer) == peers.end()) peers.push_back(op.peer);
    }
    return peers;
}

// In each step all ranks of a group put to different ones.
bool is_staggered(const Team& team, std::span<const int> group, Level level)
{
    for (std::size_t step = 0; step + 1 < group.size(); step++) {
        std::set<int> met;
        for (const int r : group) {
            const auto peers = peers_in_order(team, r, level);
            if (peers.size() + 1 != group.size()) return false;
            met.insert(peers[step]);
        }
        if (met.size() != group.size()) return false;
    }
    return true;
}

bool peers_are_staggered(const char* text)
{
    const Team team = team_of(text, 4, 4, Route::direct);
    const Topology& t = team.topology;
    for (int n = 0; n < t.nodes(); n++) {
        if (!is_staggered(team, t.ranks_on(n), Level::node)) return false;
    }
    for (int rail = 0; rail < t.rails(); rail++) {
        if (!is_staggered(team, t.ranks_on_rail(rail), Level::rail)) return false;
    }
    return true;
}

void test_staggered_peers(void**)
{
    assert_true(peers_are_staggered("4"));
    assert_true(peers_are_staggered("8"));
    assert_true(peers_are_staggered("1,1,1,1,1"));
    assert_true(peers_are_staggered("3,3,3"));
}

// ---- sources, announcements, counts

bool sources_are_right(bool in_place)
{
    const Team team = team_of("2,2", 5, 2, Route::ring, in_place);
    bool right = true;
    for_each_op(team, Op::Kind::put, [&](int r, const Op& op) {
        const bool own = op.slice.target / 5 == static_cast<std::size_t>(r);
        right = right && (op.from == Place::send) == (own && !in_place);
    });
    return right && (count(team, Op::Kind::copy) == 0) == in_place;
}

void test_sources(void**)
{
    assert_true(sources_are_right(false));
    assert_true(sources_are_right(true));
}

using RailPair = std::pair<int, int>;  // from, to

// Exactly the rail pairs that carry something are announced and drained. The last await of a pair
// is for all that the pair carries.
std::string fault_of_pair(const Team& team)
{
    std::map<RailPair, std::uint32_t> puts, awaited;
    std::set<RailPair> announced, ready, drained, used;
    const auto on_rail = [](auto f) {
        return [f](int r, const Op& op) {
            if (op.level == Level::rail) f(r, op);
        };
    };
    for_each_op(team, Op::Kind::put, on_rail([&](int r, const Op& op) { puts[{r, op.peer}]++; }));
    for_each_op(team, Op::Kind::await_data, on_rail([&](int r, const Op& op) {
                    auto& most = awaited[{op.peer, r}];
                    most = std::max(most, op.count);
                }));
    for_each_op(team, Op::Kind::announce, on_rail([&](int r, const Op& op) {
                    announced.insert({op.peer, r});
                }));
    for_each_op(team, Op::Kind::await_announced, on_rail([&](int r, const Op& op) {
                    ready.insert({r, op.peer});
                }));
    for_each_op(team, Op::Kind::drain, on_rail([&](int r, const Op& op) {
                    drained.insert({r, op.peer});
                }));
    for (const auto& [pair, n] : puts) used.insert(pair);
    if (announced != used) return "announced rail pairs are not those that are used";
    if (ready != used) return "awaited announcements are not those of the pairs that are used";
    if (drained != used) return "drained pairs are not those that are used";
    if (awaited != puts) return "not all puts of a rail pair are awaited";
    return "";
}

const char* pairs_agree()
{
    for (int ranks = 1; ranks <= 6; ranks++) {
        for (const auto& nodes : every_machine(ranks)) {
            for (const Route route : all_routes) {
                auto shards = equal_shards(ranks, 7);
                shards[0].length = 0;
                const auto fault = fault_of_pair(team_of(nodes, shards, 3, route));
                if (!fault.empty()) return keep(fault + ", nodes of ranks: " + text_of(nodes));
            }
        }
    }
    return nullptr;
}

void test_pair(void**) { expect_no_reason(pairs_agree()); }

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_hops),         cmocka_unit_test(test_partners),
        cmocka_unit_test(test_few_partners), cmocka_unit_test(test_staggered_peers),
        cmocka_unit_test(test_sources),      cmocka_unit_test(test_pair),
    };
    return hier::test::run_cases(argc, argv, "plan_peers", tests);
}
