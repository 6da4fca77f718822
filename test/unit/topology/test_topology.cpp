// SPDX-License-Identifier: BSD-3-Clause
// Nodes, rails and the ranks at which shards enter a node, on invented machines.
#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "hier/topology.hpp"
#include "test/support/machine.hpp"
#include "test/support/topology_faults.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;
using Ranks = std::vector<int>;

const char* every_small_machine_holds()
{
    for (int ranks = 1; ranks <= 7; ranks++) {
        for (const auto& nodes : every_machine(ranks)) {
            const auto fault = fault_of(Topology(nodes), nodes);
            if (!fault.empty()) return keep(fault);
        }
    }
    return nullptr;
}

const char* large_machines_hold()
{
    std::mt19937 random(1);
    for (int i = 0; i < 200; i++) {
        std::vector<int> nodes(1 + random() % 64);
        std::vector<int> order(nodes.size());
        const unsigned most = 1 + static_cast<unsigned>(random() % 9);
        for (auto& node : nodes)
            node = static_cast<int>(random() % most) * 1000 - 7;  // any number names a node
        for (auto& o : order) o = static_cast<int>(random() % 5);
        const auto fault = fault_of(Topology(nodes, order), nodes);
        if (!fault.empty()) return keep(fault);
    }
    return nullptr;
}

// Ranks get other numbers, and keep their order on the nodes. The same ranks meet on the same
// rails.
const char* rank_order_does_not_matter()
{
    std::mt19937 random(2);
    for (const char* text : {"4,2,1", "3,3", "2,3,1", "1,1,1,1", "5,4,3"}) {
        const auto nodes = machine(text);
        const Topology before(nodes);
        std::vector<int> new_rank(nodes.size());
        std::iota(new_rank.begin(), new_rank.end(), 0);
        for (int i = 0; i < 20; i++) {
            std::shuffle(new_rank.begin(), new_rank.end(), random);
            std::vector<int> new_nodes(nodes.size()), order(nodes.size());
            for (std::size_t r = 0; r < nodes.size(); r++) {
                new_nodes[static_cast<std::size_t>(new_rank[r])] = nodes[r];
                order[static_cast<std::size_t>(new_rank[r])] = before.local_of(static_cast<int>(r));
            }
            const Topology after(new_nodes, order);
            for (int r = 0; r < before.size(); r++) {
                const int now = new_rank[static_cast<std::size_t>(r)];
                if (before.local_of(r) != after.local_of(now) ||
                    before.rail_of(r) != after.rail_of(now)) {
                    return keep(std::string(text) +
                                ": a rank changes its rail when ranks are renumbered");
                }
            }
            const auto fault = fault_of(after, new_nodes);
            if (!fault.empty()) return keep(fault);
        }
    }
    return nullptr;
}

void test_every_small_machine(void**) { expect_no_reason(every_small_machine_holds()); }

void test_large_machines(void**) { expect_no_reason(large_machines_hold()); }

void test_rank_order(void**) { expect_no_reason(rank_order_does_not_matter()); }

// ---- single machines

struct Group {
    const char* machine;
    int number;  // of a node or a rail
    Ranks ranks;
};

const char* nodes_are(const std::vector<Group>& groups)
{
    for (const Group& g : groups) {
        const auto ranks = list(Topology(machine(g.machine)).ranks_on(g.number));
        if (ranks != g.ranks) return keep(std::string(g.machine) + ": node of " + text_of(ranks));
    }
    return nullptr;
}

const char* rails_are(const std::vector<Group>& groups)
{
    for (const Group& g : groups) {
        const auto ranks = list(Topology(machine(g.machine)).ranks_on_rail(g.number));
        if (ranks != g.ranks) return keep(std::string(g.machine) + ": rail of " + text_of(ranks));
    }
    return nullptr;
}

const char* pictured_rails()
{
    return rails_are({{"2,2", 0, {0, 2}},
                      {"2,2", 1, {1, 3}},
                      {"3,1", 0, {0, 1, 2, 3}},
                      {"4,2", 0, {0, 2, 4}},
                      {"4,2", 1, {1, 3, 5}}});
}

// The pictures of topology.hpp.
void test_pictured_machines(void**) { expect_no_reason(pictured_rails()); }

const char* scattered_nodes()
{
    return nodes_are({{"0 1 0 2 1", 0, {0, 2}},
                      {"0 1 0 2 1", 1, {1, 4}},
                      {"0 1 0 2 1", 2, {3}},
                      {"9 4 9 4", 0, {0, 2}}});
}

void test_scattered_ranks(void**) { expect_no_reason(scattered_nodes()); }

bool one_rank_stands_alone()
{
    const Topology t(machine("1"));
    return t.size() == 1 && t.nodes() == 1 && t.rails() == 1 && t.entry(0, 0) == 0;
}

bool nobody_is_fine()
{
    const Topology t(std::vector<int>{});
    return t.size() == 0 && t.nodes() == 0 && t.rails() == 0;
}

void test_least_machines(void**)
{
    assert_true(one_rank_stands_alone());
    assert_true(nobody_is_fine());
}

bool local_order_is_kept()
{
    const std::vector<int> order = {5, -3, 5, 0};  // ranks 0 and 2 are equal: rank order
    return list(Topology(machine("4"), order).ranks_on(0)) == Ranks{1, 3, 0, 2};
}

void test_local_order(void**) { assert_true(local_order_is_kept()); }

bool equal_nodes_keep_the_local_index()
{
    const Topology t(machine("3,3,3"));
    for (int source = 0; source < t.size(); source++) {
        for (int node = 0; node < t.nodes(); node++) {
            if (t.local_of(t.entry(source, node)) != t.local_of(source)) return false;
        }
    }
    return true;
}

void test_equal_nodes(void**) { assert_true(equal_nodes_keep_the_local_index()); }

// Largest first.
const char* loads_of_single_machines()
{
    const std::vector<Group> expected = {
        {"3,1", 0, {1, 0, 0}},
        {"3,1", 1, {3}},
        {"4,2,1", 0, {1, 1, 1, 0}},
        {"4,2,1", 1, {3, 2}},
        {"4,2,1", 2, {6}},
        {"1,2,1", 1, {1, 1}},
        {"1,3,1,1", 1, {1, 1, 1}},
        {"2,3,1", 1, {1, 1, 1}},
        // Two rails with four shards each. Two ranks of node 0 share one rail, the third has the
        // other alone.
        {"3,2,2,2,2", 0, {4, 2, 2}},
    };
    for (const Group& e : expected) {
        auto loads = entry_loads(Topology(machine(e.machine)), e.number);
        std::sort(loads.begin(), loads.end(), std::greater<>());
        if (loads == e.ranks) continue;
        return keep(std::string(e.machine) + ", node " + std::to_string(e.number) + ": loads " +
                    text_of(loads));
    }
    return nullptr;
}

void test_entry_loads(void**) { expect_no_reason(loads_of_single_machines()); }

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_every_small_machine), cmocka_unit_test(test_large_machines),
        cmocka_unit_test(test_rank_order),          cmocka_unit_test(test_pictured_machines),
        cmocka_unit_test(test_scattered_ranks),     cmocka_unit_test(test_least_machines),
        cmocka_unit_test(test_local_order),         cmocka_unit_test(test_equal_nodes),
        cmocka_unit_test(test_entry_loads),
    };
    return hier::test::run_cases(argc, argv, "topology", tests);
}
