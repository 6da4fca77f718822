// SPDX-License-Identifier: BSD-3-Clause
// Where bytes lie in bounce buffers. Senders and receivers work it out apart from each other, and
// have to agree.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "coll/allgather/bounce.hpp"
#include "hier/plan.hpp"
#include "test/support/machine.hpp"
#include "test/support/team.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// The bytes of a rank's bounce buffer that operations write, and by which home.
class Written {
public:
    explicit Written(const Plan& plan) : homes_(plan.bounce_bytes, nobody) {}

    // "" or what is wrong.
    std::string write(std::size_t at, Extent home)
    {
        if (at > homes_.size() || home.length > homes_.size() - at) return "beyond the end";
        for (std::size_t i = 0; i < home.length; i++) {
            if (homes_[at + i] != nobody) return "two bytes in one place";
            homes_[at + i] = home.offset + i;
        }
        return "";
    }
    bool has(std::size_t at, Extent home) const
    {
        for (std::size_t i = 0; i < home.length; i++) {
            if (at + i >= homes_.size() || homes_[at + i] != home.offset + i) return false;
        }
        return true;
    }
    bool is_full() const
    {
        return std::none_of(homes_.begin(), homes_.end(), [](auto h) { return h == nobody; });
    }

private:
    static constexpr std::size_t nobody = ~std::size_t{0};
    std::vector<std::size_t> homes_;
};

std::size_t place_for(const Plan& receiver, int sender)
{
    for (const BouncePlace& place : receiver.bounce_places)
        if (place.peer == sender) return place.offset;
    return ~std::size_t{0};
}

bool is_to_bounce(const Op& op) { return op.kind == Op::Kind::copy && op.to == Place::bounce; }

// What the rank itself copies out, and what all others put.
std::string write_all(const Team& team, int rank, Written& written)
{
    const Plan& plan = team.plans[static_cast<std::size_t>(rank)];
    const std::size_t own = team.shards[static_cast<std::size_t>(rank)].offset;
    std::string fault;
    for (const Op& op : plan.ops) {
        const std::size_t home = op.slice.source + (op.from == Place::send ? own : 0);
        if (is_to_bounce(op) && fault.empty())
            fault = written.write(op.slice.target, {home, op.slice.length});
    }
    for_each_op(team, Op::Kind::put, [&](int sender, const Op& op) {
        if (op.level == Level::rail && op.peer == rank && fault.empty())
            fault = written.write(place_for(plan, sender) + op.packed, target_of(op));
    });
    return fault;
}

// Every operation that reads the bounce buffer finds its bytes there. No byte is there for nothing.
std::string fault_of_rank(const Team& team, int rank)
{
    const Plan& plan = team.plans[static_cast<std::size_t>(rank)];
    Written written(plan);
    const std::string fault = write_all(team, rank, written);
    if (!fault.empty()) return fault;
    for (const Op& op : plan.ops) {
        if (op.from == Place::bounce && op.slice.length > 0 &&
            !written.has(op.slice.source, target_of(op)))
            return "an operation reads other bytes";
    }
    return written.is_full() ? "" : "a part of it is not used";
}

const char* first_fault()
{
    for (int ranks = 1; ranks <= 6; ranks++) {
        auto uneven = equal_shards(ranks, 7, 10);
        if (ranks > 2) uneven[1].length = 0;
        if (ranks > 3) std::swap(uneven[0], uneven[3]);
        for (const auto& nodes : every_machine(ranks)) {
            for (const Route route : all_routes) {
                for (const auto& shards : {equal_shards(ranks, 7), uneven}) {
                    const auto n = static_cast<std::size_t>(ranks);
                    const Team team = team_of(nodes, shards, 3, route, ranks % 2 == 0,
                                              std::vector<bool>(n, true));
                    for (int r = 0; r < ranks; r++) {
                        const std::string fault = fault_of_rank(team, r);
                        if (!fault.empty())
                            return keep(fault + ": rank " + std::to_string(r) +
                                        ", nodes of ranks " + text_of(nodes) + ", " +
                                        to_string(route));
                    }
                }
            }
        }
    }
    return nullptr;
}

void test_senders_and_receivers_agree(void**) { expect_no_reason(first_fault()); }

std::size_t most_shards(const Team& team)
{
    std::size_t most = 0;
    for (const Plan& plan : team.plans) most = std::max(most, plan.bounce_bytes);
    return most;
}

// Calls are cut by this bound, so that bounce buffers fit into a window.
const char* bound_is_exceeded()
{
    for (int ranks = 1; ranks <= 6; ranks++) {
        const auto n = static_cast<std::size_t>(ranks);
        for (const auto& nodes : every_machine(ranks)) {
            for (const Route route : all_routes) {
                const Team team = team_of(nodes, equal_shards(ranks, 1), 1, route, false,
                                          std::vector<bool>(n, true));
                if (most_shards(team) > bounce_shards(team.topology, route))
                    return keep(text_of(nodes) + ", " + to_string(route));
            }
        }
    }
    return nullptr;
}

void test_bound(void**) { expect_no_reason(bound_is_exceeded()); }

// On even nodes: the own shard, and that of each other node's rank on the rail.
void test_size(void**)
{
    const auto shards_of = [](const char* nodes, Route route) {
        const auto ranks = machine(nodes).size();
        return most_shards(team_of(nodes, 1, 1, route, false, std::vector<bool>(ranks, true)));
    };
    for (const Route route : {Route::direct, Route::ring}) {
        assert_int_equal(shards_of("4,4", route), 2);
        assert_int_equal(shards_of("3,3,3,3", route), 4);
        assert_int_equal(bounce_shards(Topology(machine("4,4")), route), 2);
        assert_int_equal(bounce_shards(Topology(machine("3,3,3,3")), route), 4);
        assert_int_equal(bounce_shards(Topology(machine("8")), route), 1);
    }
    assert_int_equal(shards_of("4,4", Route::bundles), 8);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_senders_and_receivers_agree),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_size),
    };
    return hier::test::run_cases(argc, argv, "bounce", tests);
}
