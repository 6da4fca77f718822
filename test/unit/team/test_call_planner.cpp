// SPDX-License-Identifier: BSD-3-Clause
// The planner of a team's calls, with a collective that counts the questions it gets.
#include <string>
#include <vector>

#include "base/log.hpp"
#include "team/call_planner.hpp"
#include "test/support/machine.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

std::vector<std::string> lines;
void collect(int, const char* line) { lines.emplace_back(line); }

constexpr std::size_t MiB = 1 << 20;

int chosen = 0;       // calls of choose()
int planned = 0;      // calls of plan()
std::size_t ops = 0;  // of each plan
std::size_t slow_below = 0;
std::size_t bundles_below = 0;
Constraints asked;  // of choose()
Tally tally;

class Counting final : public Collective {
public:
    static std::unique_ptr<Collective> make(const Topology&, const Rates&)
    {
        return std::make_unique<Counting>();
    }
    const char* name() const override { return "counting"; }
    bool eligible(std::size_t bytes) const override { return bytes % 2 == 0; }
    Choice choose(std::size_t bytes, const Constraints& constraints) const override
    {
        asked = constraints;
        return {.route = bytes < bundles_below ? Route::bundles : Route::direct,
                .chunk = bytes,
                .depth = ++chosen};
    }
    Plan plan(const PlanInput&) const override
    {
        planned++;
        Plan plan;
        Op op{};
        op.kind = Op::Kind::announce;
        op.peer = Op::every_peer;
        plan.ops.assign(ops, op);
        return plan;
    }
    StagedBlocks staged_blocks(Route route) const override
    {
        return {4, route == Route::bundles ? std::size_t{8} : std::size_t{2}};
    }
    Cost cost(std::size_t bytes, const Constraints& constraints) const override
    {
        const double ours = bytes < slow_below ? 2 : 1;
        return {constraints.depth == 0 ? ours : 3, 1.5};
    }
};
constexpr MakeCollective collectives[] = {Counting::make};

TeamSetup setup_of(const char* nodes)
{
    TeamSetup setup{};
    setup.name = "team";
    setup.topology = Topology(machine(nodes));
    setup.config.depth = 3;
    return setup;
}

const char* known_calls_are_taken()
{
    const TeamSetup setup = setup_of("3");
    const CallPlanner planner(setup, 0, collectives, tally);
    Call call{};
    call.bytes = 4;
    if (!planner.takes(call)) return "a size that the collective takes";
    call.bytes = 3;
    if (planner.takes(call)) return "a size that the collective does not take";
    call.bytes = 4;
    call.collective = 1;
    return planner.takes(call) ? "a collective that is not there" : nullptr;
}

void test_known_calls(void**) { expect_no_reason(known_calls_are_taken()); }

// Calls of one size travel alike, whatever else differs, because the ranks' plans have to fit
// together.
const char* a_size_keeps_its_choice()
{
    chosen = planned = 0;
    const TeamSetup setup = setup_of("3");
    CallPlanner planner(setup, 0, collectives, tally);
    Call call{};
    call.bytes = 4;
    const Choice first = planner.choose(call);
    ProgramKey key{.collective = 0,
                   .bytes = 4,
                   .stride = 4,
                   .in_place = false,
                   .has_bounce = false,
                   .is_on_device = false};
    const Program* program = planner.prepare(key, first).program.get();
    if (planner.choose(call).depth != first.depth || chosen != 1) return "it is chosen again";
    if (planner.prepare(key, first).program.get() != program) return "it is planned again";
    key.in_place = true;
    if (planner.prepare(key, planner.choose(call)).program.get() == program || planned != 2)
        return "in place there is no plan of its own";
    return chosen == 1 ? nullptr : "in place it is chosen again";
}

void test_choice_of_a_size(void**) { expect_no_reason(a_size_keeps_its_choice()); }

// A power of two for each of the three ranks, by a cost that is equal on all ranks.
void test_min_bytes(void**)
{
    const TeamSetup setup = setup_of("3");
    const CallPlanner planner(setup, 0, collectives, tally);
    slow_below = 0;
    const std::size_t always_faster = planner.min_bytes(0);
    slow_below = 100;
    const std::size_t faster_from_128 = planner.min_bytes(0);
    assert_int_equal(always_faster, 0);
    assert_int_equal(faster_from_128, 3 * 128);
}

// Inside a node the fallback module is slow then, whatever the model says.
void test_threads_leave_no_call_to_the_fallback_module(void**)
{
    slow_below = 100;
    for (const char* nodes : {"3", "2 1"}) {
        TeamSetup setup = setup_of(nodes);
        setup.has_threads = true;
        const std::size_t by_cost = 128 * static_cast<std::size_t>(setup.topology.size());
        assert_int_equal(CallPlanner(setup, 0, collectives, tally).min_bytes(0),
                         setup.topology.nodes() == 1 ? 0 : by_cost);
    }
}

// How many of these programs are still kept, after all of them were made?
std::size_t kept_of(std::size_t programs, std::size_t ops_of_each)
{
    ops = ops_of_each;
    const TeamSetup setup = setup_of("3");
    CallPlanner planner(setup, 1, collectives, tally);
    const auto prepare = [&](std::size_t i) {
        (void)planner.prepare({.collective = 0,
                               .bytes = 2 * i,
                               .stride = 2 * i,
                               .in_place = false,
                               .has_bounce = false,
                               .is_on_device = false},
                              {.chunk = i});
    };
    for (std::size_t i = 0; i < programs; i++) prepare(i);
    planned = 0;
    // From the last one on, because every program that is made again drops an older one.
    std::size_t kept = 0;
    for (std::size_t i = programs; i > 0 && planned == 0; i--) {
        prepare(i - 1);
        kept += planned == 0 ? 1 : 0;
    }
    ops = 0;
    return kept;
}

void test_memory_of_programs_is_bounded(void**)
{
    const std::size_t third = Programs::max_bytes / 3 / sizeof(Op);
    assert_int_equal(kept_of(Programs::max_kept + 5, 10), Programs::max_kept);
    const std::size_t few = kept_of(5, third / 2);
    assert_true(few >= 2 && few < 5);
    assert_int_equal(kept_of(5, 4 * third), 1);  // larger than the bound
}

// What a part of a block of `bytes` bytes may have at most, so that the staging of 64 MiB holds it.
std::size_t part_of(std::size_t bytes, bool uses_devices, bool bounces_devices)
{
    TeamSetup setup = setup_of("3");
    setup.config.staging_window = 64 * MiB;
    setup.uses_devices = uses_devices;
    setup.bounces_devices = bounces_devices;
    return CallPlanner(setup, 0, collectives, tally).part_bytes(0, bytes);
}

void test_parts(void**)
{
    // The result of all four blocks, or two in a bounce buffer, or no limit.
    assert_int_equal(part_of(16 * MiB, false, false), 16 * MiB);
    assert_int_equal(part_of(17 * MiB, false, false), 17 * MiB / 2);
    assert_int_equal(part_of(32 * MiB, true, true), 32 * MiB);
    assert_int_equal(part_of(99 * MiB, true, true), 99 * MiB / 4);
    assert_int_equal(part_of(1024 * MiB, true, false), 1024 * MiB);
    bundles_below = 20 * MiB;  // these have eight
    assert_int_equal(part_of(48 * MiB, true, true), 24 * MiB);
    assert_int_equal(part_of(36 * MiB, true, true), 36 * MiB / 5 / 4096 * 4096 + 4096);
    bundles_below = 0;
}

// All parts but the last are equal, end between two pages, and fit into the window.
const char* parts_are_cut_badly()
{
    for (std::size_t bytes = 16 * MiB + 1; bytes < 5000 * MiB; bytes += bytes / 7) {
        const std::size_t part = part_of(bytes, false, false);
        if (part % 4096 != 0 || part > 16 * MiB) return "too large, or within a page";
        if (part < 8 * MiB) return "smaller than need be";
    }
    return nullptr;
}

void test_equal_parts(void**) { expect_no_reason(parts_are_cut_badly()); }

// A part has at least 256 KiB, whatever the number of blocks, or all of a smaller window.
void test_small_windows(void**)
{
    TeamSetup setup = setup_of("3");
    setup.config.staging_window = 512 << 10;
    assert_int_equal(CallPlanner(setup, 0, collectives, tally).part_bytes(0, MiB), 256 << 10);
    setup.config.staging_window = 64 << 10;
    assert_int_equal(CallPlanner(setup, 0, collectives, tally).part_bytes(0, MiB), 64 << 10);
    setup.config.staging_window = 4096;
    assert_int_equal(CallPlanner(setup, 0, collectives, tally).part_bytes(0, 10000), 4096);
}

std::size_t lines_of(int rank)
{
    lines.clear();
    const TeamSetup setup = setup_of("3");
    CallPlanner planner(setup, rank, collectives, tally);
    for (int round = 0; round < 2; round++) {
        // More sizes than programs are kept: in the second round all of them are made again.
        for (std::size_t bytes = 2; bytes <= 4 * Programs::max_kept; bytes += 2) {
            const ProgramKey key{.collective = 0,
                                 .bytes = bytes,
                                 .stride = bytes,
                                 .in_place = false,
                                 .has_bounce = false,
                                 .is_on_device = false};
            (void)planner.prepare(key, {.chunk = bytes});
        }
    }
    return lines.size();
}

void test_the_user_is_told_once_a_size(void**)
{
    assert_int_equal(lines_of(0), 2 * Programs::max_kept);
    assert_int_equal(lines_of(1), 0);
}

Tuning tuning_of(int ranks_per_node)
{
    Tuning tuning;
    TunedLayout layout;
    layout.collective = "counting";
    layout.ranks_per_node = ranks_per_node;
    layout.min_bytes = 777;
    layout.sizes = {{.up_to = 4096, .eager = false, .publish = false},
                    {.up_to = 1 << 20, .route = Route::ring, .chunks = 4}};
    tuning.layouts = {layout};
    return tuning;
}

// The constraints of a call of so many bytes a rank, or of two ranks of three with so many others.
Constraints constraints_of(const TeamSetup& setup, std::size_t bytes, std::size_t others = 0)
{
    const CallPlanner planner(setup, 0, collectives, tally);
    Call call{};
    call.bytes = bytes;
    if (others > 0) call.blocks = {{0, bytes}, {bytes, others}, {bytes + others, others}};
    (void)planner.choose(call);
    return asked;
}

void test_tuned_choices(void**)
{
    const Tuning tuning = tuning_of(3);
    TeamSetup setup = setup_of("3");
    setup.config.eager_bytes = 100;
    setup.tuning = &tuning;
    const Constraints small = constraints_of(setup, 4096);
    assert_true(!small.route && small.chunk == 0 && small.eager_bytes == 0);
    assert_true(small.publish == false && small.depth == 3);
    const Constraints large = constraints_of(setup, 65536);
    assert_true(large.route == Route::ring && large.chunk == 16384 && large.eager_bytes == 100);
    assert_false(large.publish.has_value());
    assert_int_equal(constraints_of(setup, 40000).chunk, 12288);
    assert_false(constraints_of(setup, 2 << 20).route.has_value());
    assert_int_equal(CallPlanner(setup, 0, collectives, tally).min_bytes(0), 777);
}

// On a single node without devices larger blocks are published if the largest one is much larger than
// the average.
void test_skewed_blocks(void**)
{
    TeamSetup setup = setup_of("3");
    setup.max_skewed = 1000;
    assert_false(constraints_of(setup, 1000).publish.has_value());
    assert_true(constraints_of(setup, 1000, 499).publish == true);
    assert_false(constraints_of(setup, 1000, 502).publish.has_value());
    assert_false(constraints_of(setup, 1002, 1).publish.has_value());
    const Tuning tuning = tuning_of(3);
    setup.tuning = &tuning;
    assert_true(constraints_of(setup, 1000, 499).publish == true);
    assert_true(constraints_of(setup, 1000, 502).publish == false);
    setup.uses_devices = true;
    setup.tuning = nullptr;
    assert_true(constraints_of(setup, 1000, 499).publish == false);
}

// Calls whose blocks compare otherwise travel otherwise, though the largest one has as many bytes.
void test_sizes_of_blocks(void**)
{
    const Extent alike[] = {{0, 10}, {10, 11}, {21, 10}}, skewed[] = {{0, 0}, {0, 11}, {11, 10}},
                 empty[] = {{0, 0}, {0, 0}};
    assert_true(sizes_of({}) == BlockSizes::equal);
    assert_true(sizes_of(alike) == BlockSizes::alike);
    assert_true(sizes_of(skewed) == BlockSizes::skewed);
    assert_true(sizes_of(empty) == BlockSizes::skewed);
    const TeamSetup setup = setup_of("3");
    CallPlanner planner(setup, 0, collectives, tally);
    Call call{};
    call.bytes = 1000;
    chosen = 0;
    for (const std::size_t other : {999, 998, 10, 11}) {
        call.blocks = {{0, 1000}, {1000, other}, {1000 + other, other}};
        (void)planner.prepare(
            {.collective = 0, .bytes = 1000, .stride = 1000, .blocks = call.blocks},
            planner.choose(call));
    }
    assert_int_equal(chosen, 2);
}

// What the user states comes first. Chunks go with the route that they were measured with.
void test_stated_choices_come_first(void**)
{
    const Tuning tuning = tuning_of(3);
    TeamSetup setup = setup_of("3");
    setup.tuning = &tuning;
    setup.config.inter = HIER_INTER_DIRECT;
    const Constraints other_route = constraints_of(setup, 65536);
    assert_true(other_route.route == Route::direct && other_route.chunk == 0);
    setup.config.inter = HIER_INTER_RING;
    setup.config.chunk_bytes = 8192;
    assert_int_equal(constraints_of(setup, 65536).chunk, 8192);
}

void test_other_layouts_are_not_tuned(void**)
{
    for (const char* nodes : {"2", "3,3", "2,3", "3,2,1"}) {
        const Tuning tuning = tuning_of(3);
        TeamSetup setup = setup_of(nodes);
        setup.tuning = &tuning;
        assert_false(constraints_of(setup, 65536).route.has_value());
    }
    const Tuning tuning = tuning_of(3);
    TeamSetup setup = setup_of("3");
    setup.tuning = &tuning;
    setup.rates.engines = true;  // all ranks use GPUs
    assert_false(constraints_of(setup, 65536).route.has_value());
    setup.rates.engines = false;
    setup.config.ranks_per_node = 3;  // a virtual node
    assert_false(constraints_of(setup, 65536).route.has_value());
}

// The ranks of a node may have any order there. They have to be neighbours.
void test_orders_of_ranks(void**)
{
    Tuning tuning = tuning_of(3);
    tuning.layouts[0].nodes = 2;
    tuning.layouts[0].network = TunedLayout::Network::tcp;
    TeamSetup setup = setup_of("3,3");
    setup.rates.nic_gap = 1e-6;  // TCP
    setup.tuning = &tuning;
    const std::vector<int> order{0, 2, 1, 2, 0, 1}, cyclic{0, 1, 0, 1, 0, 1};
    setup.topology = Topology(machine("3,3"), order);
    assert_true(constraints_of(setup, 65536).route == Route::ring);
    setup.topology = Topology(cyclic, order);
    assert_false(constraints_of(setup, 65536).route.has_value());
    setup.topology = Topology(machine("3,3"));
    setup.rates.nic_gap = 0;  // RDMA
    assert_false(constraints_of(setup, 65536).route.has_value());
}

int collect_logs(void**)
{
    set_log(HIER_LOG_INFO, collect);
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_known_calls),
        cmocka_unit_test(test_choice_of_a_size),
        cmocka_unit_test(test_min_bytes),
        cmocka_unit_test(test_threads_leave_no_call_to_the_fallback_module),
        cmocka_unit_test(test_memory_of_programs_is_bounded),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_equal_parts),
        cmocka_unit_test(test_small_windows),
        cmocka_unit_test(test_the_user_is_told_once_a_size),
        cmocka_unit_test(test_tuned_choices),
        cmocka_unit_test(test_skewed_blocks),
        cmocka_unit_test(test_sizes_of_blocks),
        cmocka_unit_test(test_stated_choices_come_first),
        cmocka_unit_test(test_other_layouts_are_not_tuned),
        cmocka_unit_test(test_orders_of_ranks),
    };
    return hier::test::run_cases(argc, argv, "call_planner", tests, collect_logs);
}
