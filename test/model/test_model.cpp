// SPDX-License-Identifier: BSD-3-Clause
// The planner's plans run in every way that the model knows, and the model rejects everything else.
#include <array>
#include <cstdio>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "hunt.hpp"
#include "model.hpp"
#include "shapes.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::model;

constexpr std::size_t chunk = 3;
constexpr std::array<std::size_t, 6> sizes = {0, 1, chunk - 1, chunk, chunk + 1, 3 * chunk + 1};

// Of a node of ranks whose puts take no time, and of one whose puts take long. The first lets
// carriers pass on parts of a large shard. The second takes a ring. (Much of what balanced ranks wait
// for is for speed alone, so no mutants are made of their plans.)
constexpr SpreadCosts carriers{.unit = 1, .start = 1, .put = 0, .grain = 1, .by_cores = true};
constexpr SpreadCosts ring{.unit = 1, .start = 1, .put = 50, .grain = 1, .by_cores = false};

SpreadCosts any_costs(std::mt19937& random)
{
    SpreadCosts costs = random() % 2 == 0 ? carriers : ring;
    costs.unit = 1 + random() % 3;
    costs.start = random() % 3;
    costs.grain = 1 + random() % 3;
    costs.by_cores = random() % 2 == 0;
    return costs;
}

// A call. The properties that the test does not fix are random.
Call any_call(const Topology& topology, std::mt19937& random)
{
    Call call;
    call.shards = random() % 3 == 0 ? uneven_shards(topology.size(), 3 * chunk + 1, random)
                                    : equal_shards(topology.size(), sizes[random() % sizes.size()]);
    call.chunk = 1 + random() % (chunk + 1);
    call.route = all_routes[random() % std::size(all_routes)];
    call.in_place = some_of(topology.size(), random);
    call.bounce = none_some_or_all_of(topology.size(), random);
    call.eager = random() % 2 == 0;
    call.publish = random() % 2 == 0;
    if (call.publish && random() % 2 == 0) call.announces = some_of(topology.size(), random);
    call.own_whole = random() % 2 == 0;
    const bool may_spread = !call.eager && !call.publish && call.route != Route::bundles;
    if (may_spread && random() % 4 > 0) call.spread = any_costs(random);
    return planned(topology, std::move(call));
}

Call equal_call(const Topology& topology, Route route, std::size_t bytes,
                const std::vector<bool>& bounce, std::mt19937& random)
{
    Call call;
    call.shards = equal_shards(topology.size(), bytes);
    call.chunk = chunk;
    call.route = route;
    call.in_place = some_of(topology.size(), random);
    call.bounce = bounce;
    call.eager = random() % 2 == 0;
    call.publish = random() % 2 == 0;
    if (call.publish && random() % 2 == 0) call.announces = some_of(topology.size(), random);
    call.own_whole = random() % 2 == 0;
    return planned(topology, std::move(call));
}

int runs = 0;

// Shards of very different sizes, of which ranks hand over parts.
Call spread_call(const Topology& topology, Route route, const std::vector<bool>& bounce,
                 std::mt19937& random)
{
    Call call;
    const bool is_one_large = random() % 2 == 0;
    const auto large = random() % static_cast<unsigned>(topology.size());
    std::size_t end = 0;
    for (unsigned r = 0; r < static_cast<unsigned>(topology.size()); r++) {
        const std::size_t bytes = is_one_large ? (r == large ? 4 * chunk + 1 : 0) : 2 * r;
        call.shards.push_back({end, bytes});
        end += bytes;
    }
    call.chunk = 1 + random() % (chunk + 1);
    call.route = route;
    call.in_place = some_of(topology.size(), random);
    call.bounce = bounce;
    call.own_whole = random() % 2 == 0;
    call.spread = any_costs(random);
    return planned(topology, std::move(call));
}

// Three collectives, one after the other. The one that is tested is the second.
std::string run_among_others(const Topology& topology, Route route, std::size_t bytes,
                             std::mt19937& random)
{
    const auto bounce = none_some_or_all_of(topology.size(), random);
    const std::vector<Call> calls = {any_call(topology, random),
                                     equal_call(topology, route, bytes, bounce, random),
                                     any_call(topology, random)};
    for (const auto kind :
         {Schedule::Kind::uniform, Schedule::Kind::priorities, Schedule::Kind::priorities}) {
        runs++;
        std::string why = judge(topology, calls, {kind, static_cast<unsigned>(random()), {}, 0});
        if (!why.empty()) return why;
    }
    return "";
}

const char* every_small_team_passes()
{
    std::mt19937 random(1);
    for (int ranks = 1; ranks <= 6; ranks++) {
        for (const auto& cut : compositions(ranks)) {
            for (int order = 0; order < 5; order++) {
                const auto nodes = nodes_of_sizes(cut);
                const Topology topology = order == 0 ? Topology(nodes) : shuffled(nodes, random);
                for (const Route route : all_routes) {
                    for (const std::size_t bytes : sizes) {
                        const auto why = run_among_others(topology, route, bytes, random);
                        if (!why.empty()) return hier::test::keep(why);
                    }
                }
            }
        }
    }
    return nullptr;
}

const char* larger_teams_pass()
{
    std::mt19937 random(2);
    const std::vector<std::vector<int>> teams = {
        {4, 1, 2}, {4, 4},       {3, 3, 3}, {2, 2, 2, 2},
        {8, 1},    {1, 5, 2, 1}, {5, 3, 4}, {1, 1, 1, 1, 1, 1, 1, 1}};
    for (const auto& cut : teams) {
        for (int i = 0; i < 6; i++) {
            const Topology topology = shuffled(nodes_of_sizes(cut), random);
            for (const Route route : all_routes) {
                const auto why = run_among_others(topology, route, 2 * chunk + 1, random);
                if (!why.empty()) return hier::test::keep(why);
            }
        }
    }
    return nullptr;
}

// By rank. Every second rank is in place, so all four combinations are there.
std::vector<bool> mixed_bounce(std::size_t ranks)
{
    std::vector<bool> bounce(ranks);
    for (std::size_t r = 0; r < ranks; r++) bounce[r] = (r + 1) / 2 % 2 == 1;
    return bounce;
}

// Each rank and each pair is once slower than everything else. Each rail pair stops once after each
// of its puts.
std::string bear_laggards(const Topology& topology, const Call& call)
{
    std::vector<Schedule> schedules = laggards(topology);
    for (int r = 0; r < topology.size(); r++) {
        for (const Schedule& late : late_operations(r, call)) schedules.push_back(late);
    }
    for (const Schedule& schedule : schedules) {
        runs++;
        std::string why = judge(topology, {call, call}, schedule);
        if (!why.empty()) return why;
    }
    for (const Schedule& schedule : stalls(topology, call)) {
        runs++;
        std::string why = judge(topology, {call}, schedule);
        if (!why.empty()) return why;
    }
    return "";
}

const char* every_laggard_is_borne()
{
    std::mt19937 random(3);
    for (const auto& cut : std::vector<std::vector<int>>{
             {2, 2}, {3, 1}, {2, 3, 1}, {1, 1, 1}, {3, 3}, {2, 2, 2}, {4, 1, 2}}) {
        const Topology topology(nodes_of_sizes(cut));
        const auto n = static_cast<std::size_t>(topology.size());
        for (const Route route : all_routes) {
            for (const auto& bounce :
                 {std::vector<bool>(n, false), mixed_bounce(n), std::vector<bool>(n, true)}) {
                const Call call = equal_call(topology, route, 2 * chunk + 1, bounce, random);
                const auto why = bear_laggards(topology, call);
                if (!why.empty()) return hier::test::keep(why);
            }
        }
    }
    return nullptr;
}

const char* shards_are_spread()
{
    std::mt19937 random(4);
    const std::vector<std::vector<int>> teams = {
        {3}, {4}, {6}, {2, 2}, {3, 1}, {3, 3}, {2, 3, 1}, {1, 5, 2, 1}, {4, 4}, {2, 2, 2}};
    for (const auto& cut : teams) {
        for (int i = 0; i < 40; i++) {
            const Topology topology = shuffled(nodes_of_sizes(cut), random);
            for (const Route route : {Route::direct, Route::ring}) {
                const auto bounce = none_some_or_all_of(topology.size(), random);
                const std::vector<Call> calls = {any_call(topology, random),
                                                 spread_call(topology, route, bounce, random),
                                                 any_call(topology, random)};
                for (const auto kind : {Schedule::Kind::uniform, Schedule::Kind::priorities}) {
                    runs++;
                    const auto why =
                        judge(topology, calls, {kind, static_cast<unsigned>(random()), {}, 0});
                    if (!why.empty()) return hier::test::keep(why);
                }
            }
        }
        const Topology topology(nodes_of_sizes(cut));
        const auto n = static_cast<std::size_t>(topology.size());
        for (const auto& bounce : {std::vector<bool>(n, false), mixed_bounce(n)}) {
            for (const Route route : {Route::direct, Route::ring}) {
                const auto why =
                    bear_laggards(topology, spread_call(topology, route, bounce, random));
                if (!why.empty()) return hier::test::keep(why);
            }
        }
    }
    return nullptr;
}

// Calls in which some ranks of a node publish and others announce. Ranks without bytes of their own are as likely as
// others: they may pass bytes on, but have to say at once that they are in the call.
const char* mixed_calls_pass()
{
    std::mt19937 random(5);
    for (const auto& cut :
         std::vector<std::vector<int>>{{2}, {4}, {2, 2}, {3, 1}, {2, 2, 2}, {3, 3}}) {
        for (int i = 0; i < 400; i++) {
            const Topology topology = shuffled(nodes_of_sizes(cut), random);
            for (const Route route : all_routes) {
                std::vector<Call> calls;
                for (int n = 0; n < 2; n++) {
                    Call call = equal_call(topology, route, chunk + 1,
                                           none_some_or_all_of(topology.size(), random), random);
                    call.publish = true;
                    call.announces = some_of(topology.size(), random);
                    for (Extent& shard : call.shards)
                        if (random() % 2 == 0) shard.length = 0;
                    calls.push_back(planned(topology, std::move(call)));
                }
                for (const auto kind : {Schedule::Kind::uniform, Schedule::Kind::priorities}) {
                    const auto why =
                        judge(topology, calls, {kind, static_cast<unsigned>(random()), {}, 0});
                    if (!why.empty()) return hier::test::keep(why);
                }
            }
        }
    }
    return nullptr;
}

void test_mixed_calls(void**) { hier::test::expect_no_reason(mixed_calls_pass()); }

void test_spread(void**) { hier::test::expect_no_reason(shards_are_spread()); }

void test_small_teams(void**) { hier::test::expect_no_reason(every_small_team_passes()); }

void test_larger_teams(void**) { hier::test::expect_no_reason(larger_teams_pass()); }

void test_laggards(void**)
{
    hier::test::expect_no_reason(every_laggard_is_borne());
    print_message("%d runs of right plans\n", runs);
    assert_true(runs > 1000);
}

struct Places {
    std::vector<bool> in_place;
    std::vector<bool> bounce;
    bool publish = false;
};

std::vector<Places> places_of(const Topology& topology)
{
    const auto n = static_cast<std::size_t>(topology.size());
    const std::vector<bool> none(n, false), all(n, true);
    std::vector<bool> mixed(n);
    for (std::size_t r = 0; r < n; r += 2) mixed[r] = true;
    if (n > 6) return {{mixed, mixed_bounce(n)}, {mixed, none, true}};  // these cost the most
    std::vector<Places> places = {{mixed, none}, {none, none}, {all, none}, {mixed, none, true}};
    if (topology.nodes() == 1) return places;  // without a rail bounce changes nothing
    places.push_back({mixed, mixed_bounce(n)});
    places.push_back({none, mixed_bounce(n), true});
    places.push_back({none, all});
    return places;
}

// A rank that publishes nothing says that it is in the call, and the others wait for that.
void hunt_with_an_empty_shard(Hunt& hunt, const std::vector<int>& cut)
{
    const Topology topology(nodes_of_sizes(cut));
    const auto n = static_cast<std::size_t>(topology.size());
    Call call;
    call.chunk = 2;
    call.shards = equal_shards(topology.size(), 5);
    call.shards[1].length = 0;
    call.in_place.assign(n, true);
    call.bounce.assign(n, false);
    call.publish = true;
    hunt.all(topology, planned(topology, std::move(call)));
}

// Handovers: the order of an owner's pushes, and what its carrier waits for.
void hunt_with_handovers(Hunt& hunt, const std::vector<int>& cut, const SpreadCosts& costs)
{
    const Topology topology(nodes_of_sizes(cut));
    const auto n = static_cast<std::size_t>(topology.size());
    Call call;
    call.chunk = 2;
    std::size_t end = 0;
    for (int r = 0; r < topology.size(); r++) {
        call.shards.push_back({end, r == 1 ? 11u : 1u});
        end += call.shards.back().length;
    }
    call.in_place.assign(n, true);
    call.bounce.assign(n, false);
    call.spread = costs;
    hunt.all(topology, planned(topology, std::move(call)));
}

Hunt hunt_everywhere()
{
    Hunt hunt;
    const std::vector<std::vector<int>> teams = {{2, 2}, {3, 1},    {2, 3, 1}, {1, 1, 1}, {4},
                                                 {3, 3}, {2, 2, 2}, {1, 2, 1}, {4, 1, 2}};
    for (const auto& cut : teams) {
        const Topology topology(nodes_of_sizes(cut));
        for (const Route route : all_routes) {
            if (route == Route::ring && topology.nodes() < 3) continue;  // the same plans
            for (const Places& places : places_of(topology)) {
                Call call;
                call.chunk = 2;
                call.shards = equal_shards(topology.size(), topology.size() > 4 ? 3 : 5);
                call.route = route;
                call.in_place = places.in_place;
                call.bounce = places.bounce;
                call.publish = places.publish;
                hunt.all(topology, planned(topology, std::move(call)));
            }
        }
    }
    for (const auto& cut : {std::vector<int>{4}, {2, 2}}) {
        hunt_with_handovers(hunt, cut, carriers);
        hunt_with_handovers(hunt, cut, ring);
    }
    hunt_with_an_empty_shard(hunt, {4});
    return hunt;
}

void print(const Hunt& hunt)
{
    for (const auto& [change, count] : hunt.by_change()) {
        print_message("  %6d %s\n", count, change.c_str());
    }
    print_message("caught as\n");
    for (std::size_t f = 1; f < faults; f++) {
        print_message("  %6d %s\n", hunt.by_fault()[f], to_string(static_cast<Fault>(f)));
    }
    for (std::size_t i = 0; i < hunt.survivors().size() && i < 20; i++) {
        print_error("  survived: %s\n", hunt.survivors()[i].c_str());
    }
    print_message("%d mutants, %d caught (%d of them before they ran)\n", hunt.mutants(),
                  hunt.caught(), hunt.inspected());
}

struct Bag {
    int mutants, caught;
    std::array<int, faults> by_fault;
};

Bag hunt_and_print()
{
    const Hunt hunt = hunt_everywhere();
    print(hunt);
    return {hunt.mutants(), hunt.caught(), hunt.by_fault()};
}

void test_mutants(void**)
{
    const Bag bag = hunt_and_print();
    assert_true(bag.mutants > 10000);
    assert_int_equal(bag.mutants, bag.caught);
    // Each rule of the model rejects something. Otherwise nobody would notice if the rule were
    // gone.
    for (std::size_t f = 1; f < faults_of_plans; f++) {
        if (bag.by_fault[f] == 0) print_error("never seen: %s\n", to_string(static_cast<Fault>(f)));
        assert_int_not_equal(bag.by_fault[f], 0);
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_small_teams), cmocka_unit_test(test_larger_teams),
        cmocka_unit_test(test_mixed_calls), cmocka_unit_test(test_spread),
        cmocka_unit_test(test_laggards),    cmocka_unit_test(test_mutants),
    };
    return hier::test::run_cases(argc, argv, "model", tests);
}
