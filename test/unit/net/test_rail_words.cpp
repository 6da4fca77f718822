// SPDX-License-Identifier: BSD-3-Clause
// Words of rail peers that cannot be right.
#include "net/rail_words.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;

void test_announcements(void**)
{
    const Announcement good{4096, 40, 100, 1, 0, 12, {}};
    assert_null(fault_of(good));
    for (const std::uint64_t bytes : {std::uint64_t{0}, Announcement::max_key + 1, UINT64_MAX}) {
        Announcement bad = good;
        bad.key_bytes = bytes;
        assert_non_null(fault_of(bad));
    }
    Announcement bad = good;
    bad.address = UINT64_MAX - 59;
    assert_non_null(fault_of(bad));
    bad.address--;
    assert_null(fault_of(bad));
    bad.home = 101;
    assert_non_null(fault_of(bad));
}

BoardAddress some_board()
{
    BoardAddress board{4096, 3, {}, 1};
    board.worker.assign(40, std::byte{1});
    board.key.assign(12, std::byte{2});
    return board;
}

void test_boards(void**)
{
    const BoardAddress board = some_board();
    const auto bytes = bytes_of(board);
    const auto parsed = parse_board(bytes);
    assert_true(parsed && parsed->worker == board.worker && parsed->key == board.key);
    assert_true(parsed->address == 4096 && parsed->sink == 3 && parsed->next == 1);
    // No length but the whole one has both parts.
    for (std::size_t length = 0; length + board.key.size() <= bytes.size(); length++)
        assert_false(parse_board({bytes.data(), length}).has_value());
}

void test_boards_that_are_none(void**)
{
    BoardAddress family = some_board();
    family.probe.sin6_family = AF_UNIX;
    BoardAddress nowhere = some_board();
    nowhere.address = 0;
    BoardAddress nobody = some_board();
    nobody.worker.clear();
    for (const BoardAddress& board : {family, nowhere, nobody})
        assert_false(parse_board(bytes_of(board)).has_value());
    // The length of the worker's address is the last word before it.
    auto bytes = bytes_of(some_board());
    const std::size_t at = bytes.size() - 40 - 12 - sizeof(std::uint64_t);
    for (std::size_t i = 0; i < sizeof(std::uint64_t); i++) bytes[at + i] = std::byte{0xff};
    assert_false(parse_board(bytes).has_value());
}

void test_messages(void**)
{
    const MessageHead head{.offset = 600, .packed = 650, .shape = 1000};
    assert_true(is_inside(head, 100, 1000, 700, false));
    assert_false(is_inside(head, 101, 1000, 700, false));
    assert_true(is_inside(head, 50, 1000, 700, true));
    assert_false(is_inside(head, 51, 1000, 700, true));
    assert_false(is_inside(head, 100, 1001, 700, false));
    assert_false(is_inside({.offset = UINT64_MAX, .shape = 1000}, 100, 1000, 700, false));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_announcements),
        cmocka_unit_test(test_boards),
        cmocka_unit_test(test_boards_that_are_none),
        cmocka_unit_test(test_messages),
    };
    return hier::test::run_cases(argc, argv, "rail_words", tests);
}
