// SPDX-License-Identifier: BSD-3-Clause
// A plan made ready to run: which plans are refused, what follows each op, and the lists of each
// pair.
#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "coll/allgather/plan.hpp"
#include "exec/program.hpp"
#include "hier/plan.hpp"
#include "hier/transport.hpp"
#include "test/support/machine.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

struct Step {
    Op::Kind kind;
    Level level;
    int peer;
    std::uint32_t count;
    std::vector<std::uint32_t> after;
    Place from = Place::send;
    Place to = Place::receive;
};

Plan plan_of(const std::vector<Step>& steps)
{
    Plan plan;
    for (const Step& s : steps) {
        Op op{};
        op.kind = s.kind;
        op.from = s.from;
        op.to = s.to;
        op.level = s.level;
        op.peer = s.peer;
        op.count = s.count;
        plan.append(op, s.after);
    }
    return plan;
}

// Why the program refuses the plan; null: the plan is taken. For rank 0 of nodes {0,1} {2,3} and
// rails {0,2} {1,3}.
const char* refusal_of(const std::vector<Step>& steps)
{
    try {
        const Program program(plan_of(steps), Topology(machine("2,2")), 0);
        return nullptr;
    } catch (const SetupError& e) {
        return keep(e.what());
    }
}

using enum Op::Kind;

void test_takes_what_is_right(void**)
{
    expect_no_reason(refusal_of({{announce, Level::node, Op::every_peer, 0, {}},
                                 {await_announced, Level::node, 1, 0, {}},
                                 {await_announced, Level::rail, 2, 0, {}},
                                 {put, Level::node, 1, 1, {1}},
                                 {put, Level::rail, 2, Signal::max_count, {0, 2}},
                                 {copy, Level::node, 0, 0, {3}},
                                 {copy, Level::node, 0, 0, {}, Place::receive, Place::bounce},
                                 {copy, Level::node, 0, 0, {}, Place::bounce, Place::receive},
                                 {put, Level::rail, 2, 1, {}, Place::bounce},
                                 {drain, Level::rail, 2, 0, {4}}}));
    expect_no_reason(refusal_of({}));
}

void test_refuses_forward_dependencies(void**)
{
    const Step ready{await_announced, Level::node, 1, 0, {}};
    assert_string_equal(refusal_of({{put, Level::node, 1, 1, {1}}, ready}),
                        "op 0 depends on a later op 1");
    assert_string_equal(refusal_of({ready, {put, Level::node, 1, 1, {1}}}),
                        "op 1 depends on a later op 1");
    assert_string_equal(refusal_of({ready, {put, Level::node, 1, 1, {0, 7}}}),
                        "op 1 depends on a later op 7");
}

void test_refuses_waits_with_dependencies(void**)
{
    const Step first{announce, Level::node, Op::every_peer, 0, {}};
    assert_string_equal(refusal_of({first, {await_announced, Level::node, 1, 0, {0}}}),
                        "op 1 waits, but only after another op");
    assert_string_equal(refusal_of({first, {await_data, Level::rail, 2, 1, {0}}}),
                        "op 1 waits, but only after another op");
}

void test_refuses_wrong_levels(void**)
{
    assert_string_equal(refusal_of({{put, Level::node, 2, 1, {}}}),
                        "op 0 reaches rank 2 on the wrong level");
    assert_string_equal(refusal_of({{put, Level::rail, 1, 1, {}}}),
                        "op 0 reaches rank 1 on the wrong level");
    assert_string_equal(refusal_of({{put, Level::rail, 3, 1, {}}}),
                        "op 0 reaches rank 3 on the wrong level");  // other rail
    assert_null(refusal_of({{put, Level::node, Op::every_peer, 1, {}}}));
    assert_string_equal(refusal_of({{put, Level::rail, Op::every_peer, 1, {}}}),
                        "op 0 puts to everybody on the rail level");
}

void test_refuses_counts_that_no_signal_holds(void**)
{
    const char* why = refusal_of({{put, Level::rail, 2, Signal::max_count + 1, {}}});
    assert_non_null(why);
    assert_non_null(std::strstr(why, "16777215"));
}

void test_refuses_copies_that_are_none(void**)
{
    const char* places = "op 0 copies a buffer to itself or to the send buffer";
    assert_string_equal(refusal_of({{copy, Level::node, 0, 0, {}, Place::receive}}), places);
    assert_string_equal(refusal_of({{copy, Level::node, 0, 0, {}, Place::bounce, Place::bounce}}),
                        places);
    assert_string_equal(refusal_of({{copy, Level::node, 0, 0, {}, Place::receive, Place::send}}),
                        places);
    const char* rank = "op 0 copies, but not on the node level of its own rank";
    assert_string_equal(refusal_of({{copy, Level::rail, 0, 0, {}}}), rank);
    assert_string_equal(refusal_of({{copy, Level::node, 1, 0, {}}}), rank);
}

void test_refuses_node_puts_from_the_bounce_buffer(void**)
{
    assert_string_equal(refusal_of({{put, Level::node, 1, 1, {}, Place::bounce}}),
                        "op 0 puts from the bounce buffer on the node level");
}

// ---- tables

using Edges = std::set<std::pair<std::uint32_t, std::uint32_t>>;

std::string fault_of_edges(const Plan& plan, const Program& program)
{
    Edges forward, backward;
    for (std::uint32_t i = 0; i < program.size(); i++) {
        for (const auto next : program.successors(i)) forward.insert({i, next});
        for (const auto before : plan.dependencies_of(plan.ops[i])) backward.insert({before, i});
        if (program.dependencies()[i] != plan.ops[i].dependencies)
            return "a number of dependencies is wrong";
    }
    return forward == backward ? "" : "successors are not the dependencies turned round";
}

// Every op with a peer is in the list of its pair, by growing count, and in no other list.
std::string fault_of_pair(const Plan& plan, const Program& program, const Topology& t, int rank)
{
    std::size_t listed = 0, to_list = 0;
    for (const Level level : {Level::node, Level::rail}) {
        std::set<int> met;
        for (const auto& c : program.pairs(level)) {
            if (!met.insert(c.rank).second) return "two pairs to one rank";
            const auto group = level == Level::node ? t.ranks_on(t.node_of(rank))
                                                    : t.ranks_on_rail(t.rail_of(rank));
            if (group[static_cast<std::size_t>(c.peer)] != c.rank)
                return "a peer's index is not that of its rank";
            for (const auto& [kind, list] :
                 {std::pair(put, c.puts), std::pair(await_data, c.awaits),
                  std::pair(await_announced, c.readies)}) {
                for (std::size_t i = 0; i < list.size(); i++) {
                    const Op& op = plan.ops[list[i]];
                    listed++;
                    if (op.kind != kind || op.level != level || op.peer != c.rank)
                        return "an op is in a foreign list";
                    if (program.peer_of(list[i]) != c.peer) return "peer_of contradicts the pair";
                    if (i > 0 && plan.ops[list[i - 1]].count > op.count)
                        return "a list is not in the order of counts";
                }
            }
        }
    }
    for (const Op& op : plan.ops)
        to_list += op.kind == put || op.kind == await_data || op.kind == await_announced ? 1 : 0;
    return listed == to_list ? "" : "an op is in no list";
}

const char* tables_fit_plans()
{
    for (int ranks = 1; ranks <= 5; ranks++) {
        for (const auto& nodes : every_machine(ranks)) {
            const Topology t(nodes);
            const auto shards = equal_shards(ranks, 7);
            for (int r = 0; r < ranks; r++) {
                for (const Route route : all_routes) {
                    const Plan plan =
                        plan_allgather(t, r, {shards, 3, route, r % 2 == 0, r % 3 == 0});
                    const Program program(plan, t, r);
                    auto fault = fault_of_edges(plan, program);
                    if (fault.empty()) fault = fault_of_pair(plan, program, t, r);
                    if (!fault.empty()) return keep(fault + ", nodes of ranks " + text_of(nodes));
                }
            }
        }
    }
    return nullptr;
}

void test_tables(void**) { expect_no_reason(tables_fit_plans()); }

// Plans list ops in the order of preference. The order of a pair is that of its counts.
const char* puts_are_sorted_by_count()
{
    const Program program(plan_of({{put, Level::rail, 2, 3, {}},
                                   {put, Level::rail, 2, 1, {}},
                                   {put, Level::rail, 2, 2, {}}}),
                          Topology(machine("2,2")), 0);
    const auto& puts = program.pairs(Level::rail)[0].puts;
    return puts == std::vector<std::uint32_t>{1, 2, 0} ? nullptr : "not by count";
}

void test_sorted_puts(void**) { expect_no_reason(puts_are_sorted_by_count()); }

// The first put of a rank on the rail may need data of its node. Then the rank must not keep its
// own pushes back until that put: leaders would wait for each other.
void test_first_ops(void**)
{
    const Program program(plan_of({{announce, Level::node, Op::every_peer, 0, {}},
                                   {await_announced, Level::node, 1, 0, {}},
                                   {put, Level::node, 1, 1, {1}},
                                   {await_data, Level::node, 1, 1, {}},
                                   {enter, Level::rail, 2, 0, {}},
                                   {await_entered, Level::rail, 2, 0, {}},
                                   {put, Level::rail, 2, 1, {}},
                                   {copy, Level::node, 0, 0, {3}}}),
                          Topology(machine("2,2")), 0);
    const std::vector<std::uint32_t> wanted = {0, 4, 6};
    const auto found = program.first_ops();
    assert_true(std::equal(found.begin(), found.end(), wanted.begin(), wanted.end()));
}

void test_who_opens_the_rail(void**)
{
    const auto opens = [](const char* nodes, int rank, Route route, bool bounce) {
        const auto shards = equal_shards(static_cast<int>(machine(nodes).size()), 5);
        const Topology topology(machine(nodes));
        AllgatherShape shape{shards, 100, route, false, bounce};
        return Program(plan_allgather(topology, rank, shape), topology, rank).opens_the_rail();
    };
    for (const bool bounce : {false, true}) {
        assert_true(opens("2,2", 0, Route::direct, bounce));
        assert_true(opens("2,2,2", 1, Route::ring, bounce));
        assert_true(opens("1,1,1", 0, Route::bundles, bounce));
        assert_false(opens("2,2,2", 0, Route::bundles, bounce));
        assert_false(
            opens("2,2", 1, Route::bundles, bounce));  // this rank puts nothing on the rail
        assert_false(opens("4", 0, Route::direct, bounce));
    }
}

// ---- programs of one exchange

const std::vector<Step> exchange = {{put, Level::node, Op::every_peer, 1, {}, Place::send},
                                    {copy, Level::node, 0, 0, {}},
                                    {await_entered, Level::node, 1, 0, {}},
                                    {await_data, Level::node, 1, 1, {}},
                                    {await_data, Level::node, 2, 1, {}}};

bool is_exchange(const std::vector<Step>& steps)
{
    return Program(plan_of(steps), Topology(machine("3,1")), 0).exchange() != nullptr;
}

void test_an_exchange(void**)
{
    const Program program(plan_of(exchange), Topology(machine("3,1")), 0);
    const NodeExchange* const whole = program.exchange();
    assert_non_null(whole);
    assert_int_equal(whole->put.peer, Op::every_peer);
    assert_true(whole->put.from == Place::send);
    assert_true(whole->copy.has_value());
    assert_true(whole->copy->to == Place::receive);
    auto in_place = exchange;
    in_place.erase(in_place.begin() + 1);
    const Program without_copy(plan_of(in_place), Topology(machine("3,1")), 0);
    assert_non_null(without_copy.exchange());
    assert_false(without_copy.exchange()->copy.has_value());
}

void test_more_or_less_than_an_exchange(void**)
{
    assert_false(is_exchange({}));
    for (std::size_t missing : {0u, 3u}) {
        auto steps = exchange;
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(missing));
        assert_false(is_exchange(steps));
    }
    auto ordered = exchange;
    ordered[1].after = {0};
    assert_false(is_exchange(ordered));
    const Step others[] = {{enter, Level::node, Op::every_peer, 0, {}},
                           {announce, Level::node, Op::every_peer, 0, {}},
                           {put, Level::node, Op::every_peer, 2, {}},
                           {put, Level::node, 1, 1, {}},
                           {put, Level::rail, 3, 1, {}},
                           {copy, Level::node, 0, 0, {}},
                           {copy, Level::node, 0, 0, {}, Place::receive, Place::bounce},
                           {await_data, Level::node, 2, 2, {}},
                           {await_data, Level::rail, 3, 1, {}}};
    for (const Step& other : others) {
        auto steps = exchange;
        steps.push_back(other);
        assert_false(is_exchange(steps));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_first_ops),
        cmocka_unit_test(test_who_opens_the_rail),
        cmocka_unit_test(test_takes_what_is_right),
        cmocka_unit_test(test_refuses_forward_dependencies),
        cmocka_unit_test(test_refuses_waits_with_dependencies),
        cmocka_unit_test(test_refuses_wrong_levels),
        cmocka_unit_test(test_refuses_counts_that_no_signal_holds),
        cmocka_unit_test(test_refuses_copies_that_are_none),
        cmocka_unit_test(test_refuses_node_puts_from_the_bounce_buffer),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_sorted_puts),
        cmocka_unit_test(test_an_exchange),
        cmocka_unit_test(test_more_or_less_than_an_exchange),
    };
    return hier::test::run_cases(argc, argv, "program", tests);
}
