// SPDX-License-Identifier: BSD-3-Clause
// The writer of plans adds counts, buffers and dependencies to the operations that it is asked for.
#include "coll/common/plan_writer.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;

// Rank 1 has the bytes 10 to 19 of every receive buffer. In its bounce buffer these come behind 100
// others.
const BounceLayout& layout()
{
    static const BounceLayout all = [] {
        BounceLayout made;
        made.add({1000, 100});
        made.add({10, 10});
        made.add({30, 10});
        return made;
    }();
    return all;
}
PlanWriter writer_with(bool in_place, bool bounce)
{
    return PlanWriter(
        1, {.own = {10, 10}, .in_place = in_place, .bounce = bounce ? &layout() : nullptr}, 3);
}
constexpr Extent own_part{12, 4};
constexpr Extent foreign{30, 4};

const char* puts_are_counted_by_pair()
{
    PlanWriter writer = writer_with(false, false);
    const auto first = writer.put(Level::node, 0, own_part, true);
    const auto second = writer.put(Level::node, 0, foreign, false);
    const auto other_level = writer.put(Level::rail, 0, own_part, true);
    const auto other_peer = writer.put(Level::node, 2, own_part, true);
    const Plan plan = std::move(writer).take();
    if (plan.depth != 3) return "the depth is another one";
    if (plan.ops[first].count != 1 || plan.ops[second].count != 2)
        return "not in the order of puts";
    if (plan.ops[other_level].count != 1) return "both levels together";
    return plan.ops[other_peer].count == 1 ? nullptr : "all peers together";
}

// At a peer with a bounce buffer a put goes behind the one before.
const char* puts_are_packed_by_pair()
{
    PlanWriter writer = writer_with(false, false);
    const auto first = writer.put(Level::rail, 0, own_part, true);
    const auto other_peer = writer.put(Level::rail, 2, foreign, false);
    const auto second = writer.put(Level::rail, 0, foreign, false);
    const Plan plan = std::move(writer).take();
    if (plan.ops[first].packed != 0 || plan.ops[other_peer].packed != 0) return "not at the start";
    return plan.ops[second].packed == own_part.length ? nullptr : "not behind the first";
}

void test_packed(void**) { hier::test::expect_no_reason(puts_are_packed_by_pair()); }

void test_counts(void**) { hier::test::expect_no_reason(puts_are_counted_by_pair()); }

struct Source {
    Place from;
    std::size_t at;
};

Source source_of(bool in_place, bool bounce, Level level, bool is_own)
{
    PlanWriter writer = writer_with(in_place, bounce);
    const auto put = writer.put(level, 0, is_own ? own_part : foreign, is_own);
    const Op op = std::move(writer).take().ops[put];
    return {op.from, op.slice.source};
}

// A chunk has its home offset in the receive buffer. The send buffer holds the own block alone, and
// the bounce buffer is packed.
void test_sources(void**)
{
    const auto expect = [](const Source& source, Place from, std::size_t at) {
        assert_int_equal(source.from, from);
        assert_int_equal(source.at, at);
    };
    for (const Level level : {Level::node, Level::rail}) {
        expect(source_of(false, false, level, true), Place::send, 2);
        expect(source_of(true, false, level, true), Place::receive, 12);
        expect(source_of(false, false, level, false), Place::receive, 30);
    }
    expect(source_of(false, true, Level::node, true), Place::send, 2);
    expect(source_of(false, true, Level::node, false), Place::receive, 30);
    expect(source_of(false, true, Level::rail, true), Place::bounce, 102);
    expect(source_of(true, true, Level::rail, true), Place::bounce, 102);
    expect(source_of(false, true, Level::rail, false), Place::bounce, 110);
}

const char* puts_wait_for_what_holds_them()
{
    PlanWriter writer = writer_with(false, false);
    const auto ready = writer.add(Op::Kind::await_announced, Level::node, 0);
    const auto copied = writer.copy(Place::send, Place::receive, own_part);
    writer.hold_puts(Level::node, 0, {ready});
    const auto held = writer.put(Level::node, 0, foreign, false, {copied});
    const auto other_peer = writer.put(Level::node, 2, foreign, false);
    writer.hold_puts(Level::node, 0, {held});
    const auto behind = writer.put(Level::node, 0, foreign, false);
    const Plan plan = std::move(writer).take();
    const auto after = [&](std::uint32_t op) {
        const auto all = plan.dependencies_of(plan.ops[op]);
        return std::vector<std::uint32_t>(all.begin(), all.end());
    };
    if (after(held) != std::vector{copied, ready}) return "it does not wait for both";
    if (!after(other_peer).empty()) return "another peer's puts are held";
    return after(behind) == std::vector{held} ? nullptr : "the first hold is still there";
}

void test_holds(void**) { hier::test::expect_no_reason(puts_wait_for_what_holds_them()); }

const char* a_chunk_is_copied_out_once()
{
    PlanWriter writer = writer_with(false, true);
    const auto first = writer.copy_out(Place::send, own_part);
    if (writer.copy_out(Place::send, own_part) != first) return "it is copied twice";
    if (writer.copy_out(Place::receive, foreign) == first) return "another chunk is not copied";
    if (writer.target_of(first) != Extent{102, 4}) return "it is not at its place";
    const Plan plan = std::move(writer).take();
    const Op& op = plan.ops[first];
    if (op.kind != Op::Kind::copy || op.to != Place::bounce || op.peer != 1) return "no such copy";
    return op.slice.source == 2 ? nullptr : "not from the send buffer";
}

void test_copies_out(void**) { hier::test::expect_no_reason(a_chunk_is_copied_out_once()); }

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),     cmocka_unit_test(test_packed),
        cmocka_unit_test(test_sources),    cmocka_unit_test(test_holds),
        cmocka_unit_test(test_copies_out),
    };
    return hier::test::run_cases(argc, argv, "plan_writer", tests);
}
