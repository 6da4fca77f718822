// SPDX-License-Identifier: BSD-3-Clause
// Plans of published calls: one put for all ranks of the node.
#include <cstddef>

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

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_publish),
    };
    return hier::test::run_cases(argc, argv, "plan_publish", tests);
}
