// SPDX-License-Identifier: BSD-3-Clause
// The path of a put inside a node: the table of src/node/path_choice.hpp. The first put to a peer
// decides between CMA and cells.
#include "node/path_choice.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;

constexpr std::size_t small = PathChoice::max_through_cells, large = small + 1;
constexpr std::size_t result = 4 * large;

bool is(PutPath path, PutPath wanted) { return path == wanted; }

void test_host_memory(void**)
{
    PathChoice choice(3, true, true, false, {small, 0});
    choice.begin(result);
    assert_true(is(choice.choose(1, large, false), PutPath::open));
    choice.report(1, true);
    assert_true(is(choice.choose(1, 1, false), PutPath::cma));
    assert_true(is(choice.choose(2, small, false), PutPath::cells));
    assert_true(is(choice.choose(2, large, false), PutPath::cells));
    choice.begin(result);
    assert_true(is(choice.choose(2, large, false), PutPath::open));
    choice.report(2, false);
    assert_true(is(choice.choose(2, large, false), PutPath::cells));
}

// The parts of a small result go through cells, however large the first put is.
void test_the_result_decides(void**)
{
    PathChoice choice(3, true, true, false, {small, result});
    choice.begin(result);
    assert_true(is(choice.choose(1, large, false), PutPath::cells));
    assert_true(is(choice.choose(1, small, false), PutPath::cells));
    choice.begin(result + 1);
    assert_true(is(choice.choose(1, large, false), PutPath::open));
    assert_true(is(choice.choose(2, small, false), PutPath::cells));
}

void test_one_path_alone(void**)
{
    PathChoice cma(2, true, false, false, {0, 0}), cells(2, false, true, false, {small, 0});
    cma.begin(result);
    cells.begin(result);
    for (const std::size_t bytes : {std::size_t{0}, small, large}) {
        assert_true(is(cma.choose(1, bytes, false), PutPath::cma));
        assert_true(is(cells.choose(1, bytes, false), PutPath::cells));
    }
}

void test_device_memory(void**)
{
    struct {
        WritePath receiver;
        PutPath from_host, from_device;
    } const table[] = {
        {WritePath::by_cpu, PutPath::open, PutPath::cells},
        {WritePath::by_cells, PutPath::cells, PutPath::cells},
        {WritePath::by_device, PutPath::engines, PutPath::engines},
        {WritePath::by_segments, PutPath::engines, PutPath::engines},
        {WritePath::by_device_cells, PutPath::device_cells, PutPath::device_cells},
    };
    PathChoice choice(2, true, true, true, {small, 0});
    for (const auto& row : table) {
        choice.begin(result);
        assert_false(choice.is_known(1));
        choice.know(1, row.receiver);
        assert_true(choice.is_known(1));
        assert_true(is(choice.choose(1, large, false), row.from_host));
        assert_true(is(choice.choose(1, large, true), row.from_device));
    }
}

// Puts of one call to one peer must not overtake each other.
void test_cells_once_are_cells_for_the_call(void**)
{
    PathChoice choice(2, true, true, true, {small, 0});
    choice.begin(result);
    choice.know(1, WritePath::by_cpu);
    assert_true(is(choice.choose(1, large, true), PutPath::cells));
    assert_true(is(choice.choose(1, large, false), PutPath::cells));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_host_memory),
        cmocka_unit_test(test_the_result_decides),
        cmocka_unit_test(test_one_path_alone),
        cmocka_unit_test(test_device_memory),
        cmocka_unit_test(test_cells_once_are_cells_for_the_call),
    };
    return hier::test::run_cases(argc, argv, "path_choice", tests);
}
