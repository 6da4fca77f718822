// SPDX-License-Identifier: BSD-3-Clause
// Plans of published calls: one put for all ranks of the node.
#include <cstddef>
#include <map>
#include <string>

#include "coll/allgather/plan.hpp"
#include "test/support/machine.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// Every put on the node is for all of its ranks, and waits for none of them.
const char* a_publish_puts_once()
{
    for (const Route route : all_routes) {
        const Topology topology(machine("3,3,3"));
        const auto shards = equal_shards(9, 10);
        for (int r = 0; r < 9; r++) {
            const Plan plan = plan_allgather(topology, r,
                                             {.shards = shards,
                                              .chunk = 100,
                                              .route = route,
                                              .in_place = false,
                                              .bounce = false,
                                              .publish = true});
            std::size_t puts = 0;
            for (const Op& op : plan.ops) {
                if (op.level != Level::node) continue;
                if (op.kind == Op::Kind::announce) return "it announces";
                if (op.kind != Op::Kind::put) continue;
                if (op.peer != Op::every_peer || op.count != ++puts) return "not one to all";
                for (const std::uint32_t d : plan.dependencies_of(op))
                    if (plan.ops[d].kind == Op::Kind::await_announced) return "it waits for others";
            }
            // The own shard, and two of other nodes, or two bundles at two of the three ranks.
            const bool takes_bundles = route == Route::bundles;
            if (takes_bundles ? puts > 3 : puts != 3) return "not as many puts as shards";
        }
    }
    return nullptr;
}

void test_publish(void**) { expect_no_reason(a_publish_puts_once()); }

// By rank of the team: the puts of a plan to the node peer, and the arrivals that the plan awaits of it.
struct Traffic {
    std::map<int, std::vector<Extent>> puts;
    std::map<int, std::vector<std::uint32_t>> awaits;
    bool operator==(const Traffic&) const = default;
};

Traffic node_traffic(const Topology& topology, int rank, const Plan& plan)
{
    Traffic traffic;
    for (const Op& op : plan.ops) {
        if (op.level != Level::node) continue;
        if (op.kind == Op::Kind::await_data) traffic.awaits[op.peer].push_back(op.count);
        if (op.kind != Op::Kind::put) continue;
        for (const int peer : topology.ranks_on(topology.node_of(rank))) {
            if (peer == rank || (op.peer != peer && op.peer != Op::every_peer)) continue;
            traffic.puts[peer].push_back({op.slice.target, op.slice.length});
            if (op.count != traffic.puts[peer].size()) traffic.puts.clear();  // never equal
        }
    }
    return traffic;
}

// In a mixed call some ranks publish and others do not. So both plans of a rank put the same slices to a peer, in the
// same order, and await the same.
void test_both_plans_of_a_mixed_call(void**)
{
    constexpr std::size_t sizes[] = {10, 0, 7, 3, 10, 1, 0};
    for (const char* nodes : {"4", "3,3", "2,3,1", "0 1 0 1 0", "2,2,2"}) {
        const Topology topology(machine(nodes));
        const auto ranks = static_cast<std::size_t>(topology.size());
        std::vector<Extent> uneven;
        for (std::size_t r = 0, at = 0; r < ranks; at += sizes[r++])
            uneven.push_back({at, sizes[r]});
        for (const auto& shards : {equal_shards(topology.size(), 10), uneven}) {
            for (const Route route : all_routes) {
                for (const std::size_t chunk : {4, 100}) {
                    for (int r = 0; r < topology.size(); r++) {
                        AllgatherShape shape{.shards = shards,
                                             .chunk = chunk,
                                             .route = route,
                                             .in_place = false,
                                             .bounce = false,
                                             .own_whole = topology.nodes() == 1};
                        const Plan announces = plan_allgather(topology, r, shape);
                        shape.publish = true;
                        const Plan publishes = plan_allgather(topology, r, shape);
                        if (node_traffic(topology, r, announces) ==
                            node_traffic(topology, r, publishes))
                            continue;
                        expect_no_reason(keep(std::string(nodes) + ", " + to_string(route) +
                                              ": not those of rank " + std::to_string(r)));
                    }
                }
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_publish),
        cmocka_unit_test(test_both_plans_of_a_mixed_call),
    };
    return hier::test::run_cases(argc, argv, "plan_publish", tests);
}
