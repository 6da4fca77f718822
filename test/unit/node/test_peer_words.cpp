// SPDX-License-Identifier: BSD-3-Clause
// Words of other ranks of the node that cannot be right.
#include "node/peer_words.hpp"

#include <string>

#include "node/entry_ring.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;

constexpr std::size_t lent = 1000;

std::string said(const char* fault) { return fault == nullptr ? "" : fault; }

NodeOffer offer(WritePath path, std::uint64_t address, std::uint64_t length)
{
    return {length, address, length, 0, 0, 0, path, {4096, 2 * lent, 7, 12, 0, {}}, 0};
}

void test_offers(void**)
{
    using enum WritePath;
    for (const WritePath path : {by_cpu, by_cells, by_device, by_segments, by_device_cells})
        assert_string_equal(said(fault_of(offer(path, 5000, 100), lent)).c_str(), "");
    assert_non_null(fault_of(offer(static_cast<WritePath>(5), 5000, 100), lent));
    assert_non_null(fault_of(offer(by_cpu, UINT64_MAX, 2), lent));
    assert_null(fault_of(offer(by_device, 4096, 2 * lent), lent));
    assert_non_null(fault_of(offer(by_device, 4095, 100), lent));
    assert_non_null(fault_of(offer(by_device, 4096, 2 * lent + 1), lent));
    assert_non_null(fault_of(offer(by_device_cells, 0, 100), 2 * lent + 1));
    NodeOffer nobody = offer(by_device, 5000, 100);
    nobody.memory.owner = 0;
    assert_non_null(fault_of(nobody, lent));
    nobody.path = by_cells;  // the memory does not matter
    assert_null(fault_of(nobody, lent));
}

void test_fragments(void**)
{
    constexpr std::size_t bytes = 64, receive = 1000;
    assert_null(fault_of(CellHeader{936, 64}, bytes, receive));
    assert_non_null(fault_of(CellHeader{937, 64}, bytes, receive));
    assert_non_null(fault_of(CellHeader{UINT64_MAX, 64}, bytes, receive));
    assert_non_null(fault_of(CellHeader{0, 65}, bytes, receive));
    assert_null(fault_of(DeviceCellEntry{936, 64, 1}, bytes, receive));
    assert_non_null(fault_of(DeviceCellEntry{937, 64, 1}, bytes, receive));
    assert_non_null(fault_of(DeviceCellEntry{0, 65, 1}, bytes, receive));
    assert_null(fault_of_block(16, 100, 900, 100, 116, receive));
    assert_non_null(fault_of_block(16, 100, 901, 100, 116, receive));
    assert_non_null(fault_of_block(17, 100, 900, 100, 116, receive));
    assert_non_null(fault_of_block(200, 0, 900, 0, 116, receive));
    // Of a lent block there is an address.
    assert_null(fault_of_block(108, 8, 0, 1000, 116, receive));
    assert_non_null(fault_of_block(109, 8, 0, 1000, 116, receive));
    assert_non_null(fault_of_block(108, 8, 1, 1000, 116, receive));
}

void test_rings(void**)
{
    const auto can_hold = [](std::uint64_t read, std::uint64_t freed, std::uint64_t arrived) {
        return EntryRing<CellEntry>::can_hold(read, freed, arrived, 4);
    };
    assert_true(can_hold(5, 5, 5) && can_hold(5, 4, 8) && can_hold(8, 4, 8));
    assert_false(can_hold(5, 4, 9));  // too many
    assert_false(can_hold(5, 4, 4));  // fewer than were read
    assert_false(can_hold(5, 6, 8));  // freed before they were read
    assert_false(can_hold(5, 4, 0));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_offers),
        cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_rings),
    };
    return hier::test::run_cases(argc, argv, "peer_words", tests);
}
