// SPDX-License-Identifier: BSD-3-Clause
// The stripes of a rail: the lane of each put, and the puts that have arrived. All by counting.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "net/joined_parts.hpp"
#include "net/stripes.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// Puts arrive in order on each lane, and in any order across lanes.
const char* counts_are_unbroken()
{
    std::mt19937 random(1);
    for (int round = 0; round < 300; round++) {
        const auto lanes = static_cast<std::uint32_t>(1 + random() % 5);
        const auto puts = static_cast<std::uint32_t>(random() % 20);
        std::vector<std::uint32_t> highest(lanes), next(lanes);
        std::vector<bool> is_there(puts + 1);
        for (std::uint32_t lane = 0; lane < lanes; lane++) next[lane] = lane + 1;
        for (std::uint32_t left = puts; left > 0;) {
            const auto lane = static_cast<std::uint32_t>(random() % lanes);
            if (next[lane] > puts) continue;
            if (stripe_of(next[lane], lanes) != lane) return keep("a put on another lane");
            highest[lane] = next[lane];
            is_there[highest[lane]] = true;
            next[lane] += lanes;
            left--;
            std::uint32_t wanted = 0, all = ~0u;
            while (wanted < puts && is_there[wanted + 1]) wanted++;
            for (std::uint32_t i = 0; i < lanes; i++)
                all = std::min(all, unbroken(highest[i], i, lanes));
            // Puts behind the last one are not missing.
            if (std::min(all, puts) != wanted)
                return keep("round " + std::to_string(round) + ": " + std::to_string(all) +
                            ", not " + std::to_string(wanted));
        }
    }
    return nullptr;
}

void test_counting(void**) { expect_no_reason(counts_are_unbroken()); }

// The last put on each lane, compared with counting.
void test_last_on_a_lane(void**)
{
    for (std::uint32_t lanes = 1; lanes <= 4; lanes++) {
        std::vector<std::uint32_t> last(lanes);
        for (std::uint32_t count = 1; count <= 20; count++) {
            last[stripe_of(count, lanes)] = count;
            for (std::uint32_t lane = 0; lane < lanes; lane++)
                assert_int_equal(last_on(count, lane, lanes), last[lane]);
        }
    }
}

// Counts the chunks that a member sends to all others and gets from them. They are spread over the
// lanes in use as evenly as whole chunks can be, and no other lane has any.
std::string spread_of(std::size_t members, std::size_t stripes, std::size_t lanes)
{
    const std::size_t used = lanes_in_use(members, stripes, lanes);
    for (std::size_t me = 0; me < members; me++) {
        std::vector<std::size_t> sent(lanes), got(lanes);
        for (std::size_t peer = 0; peer < members; peer++) {
            for (std::size_t stripe = 0; peer != me && stripe < stripes; stripe++) {
                sent[(first_lane(me, peer, members, used) + stripe) % used]++;
                got[(first_lane(peer, me, members, used) + stripe) % used]++;
            }
        }
        for (const auto& all : {sent, got}) {
            const auto end = all.begin() + static_cast<std::ptrdiff_t>(used);
            const auto [min, max] = std::minmax_element(all.begin(), end);
            if (*min == 0) return "a lane in use has nothing";
            if (used == lanes && stripes == 1 && *max > *min + 1) return "uneven";
            if (std::any_of(end, all.end(), [](std::size_t n) { return n > 0; }))
                return "a lane that is not in use";
        }
    }
    return "";
}

void test_spread(void**)
{
    for (std::size_t members = 2; members < 12; members++) {
        for (std::size_t lanes = 1; lanes <= 5; lanes++) {
            for (std::size_t stripes = 1; stripes <= lanes; stripes++)
                expect_no_reason(keep(spread_of(members, stripes, lanes)));
        }
    }
}

// ---- drains

bool the_last_part_completes()
{
    struct Seen final : Completions {
        std::string text;
        void complete(std::uint32_t op, Status status) override
        {
            text += std::to_string(op) + (failed(status) ? "! " : " ");
        }
    } seen;
    JoinedParts parts;
    JoinedParts::Reports reports(parts, seen);
    parts.expect(5, 2);
    parts.expect(6, 3);
    for (const std::uint32_t op : {6u, 7u, 5u, 6u}) reports.complete(op, Status::ok);
    const bool is_early = seen.text != "7 ";
    reports.complete(5, Status::ok);
    reports.complete(6, Status::transport_error);
    reports.complete(5, Status::ok);  // belongs to the next call
    parts.expect(8, 2);
    reports.complete(8, Status::transport_error);
    reports.complete(8, Status::ok);
    return !is_early && seen.text == "7 5 6! 5 8! ";
}

void test_joined_parts(void**) { assert_true(the_last_part_completes()); }

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_counting),
        cmocka_unit_test(test_last_on_a_lane),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_joined_parts),
    };
    return hier::test::run_cases(argc, argv, "stripes", tests);
}
