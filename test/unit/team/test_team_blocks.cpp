// SPDX-License-Identifier: BSD-3-Clause
// Calls in which the ranks' blocks differ, through the C interface.
#include <algorithm>
#include <string>
#include <vector>

#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// Ranks, ranks on a node.
struct Shape {
    int ranks, ranks_per_node;
};
constexpr Shape shapes[] = {{2, 0}, {4, 0}, {4, 2}, {5, 2}};
constexpr int routes[] = {HIER_INTER_DIRECT, HIER_INTER_RING, HIER_INTER_BUNDLES};

enum class Sizes { linear, one_alone, none_of_the_first, random };
constexpr Sizes all_sizes[] = {Sizes::linear, Sizes::one_alone, Sizes::none_of_the_first,
                               Sizes::random};

std::size_t size_of(Sizes sizes, std::size_t rank, std::size_t most)
{
    switch (sizes) {
    case Sizes::linear:
        return (rank + 1) * most / 8;
    case Sizes::one_alone:
        return rank == 1 ? most : 0;
    case Sizes::none_of_the_first:
        return rank == 0 ? 0 : most;
    case Sizes::random:
        return (rank * 7919 + most) % (most + 1);
    }
    return 0;
}

// Blocks one behind the other. In every second layout the last rank's block comes first, and there
// are gaps.
std::vector<hier_block> make_blocks(int ranks, Sizes sizes, std::size_t most)
{
    std::vector<hier_block> blocks(static_cast<std::size_t>(ranks));
    std::vector<std::size_t> order(blocks.size());
    for (std::size_t i = 0; i < order.size(); i++) order[i] = i;
    const bool is_odd = sizes == Sizes::random;
    if (is_odd) std::reverse(order.begin(), order.end());
    std::size_t end = 0;
    for (const std::size_t rank : order) {
        blocks[rank] = {end, size_of(sizes, rank, most)};
        end += blocks[rank].bytes + (is_odd ? 3 : 0);
    }
    return blocks;
}

std::string make_calls(TeamRank& team, int ranks)
{
    std::string wrong;
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    for (const std::size_t most : {8u, 1000u, 300001u, 8u}) {
        for (const Sizes sizes : all_sizes) {
            const int code = team.call_blocks(make_blocks(ranks, sizes, most), wrong);
            if (code != HIER_OK)
                return std::string(hier_strerror(code)) + ": " + ForkedRank::log_lines();
            if (!wrong.empty()) return wrong;
        }
        // Equal blocks of the same size in between have a program of their own.
        if (team.call(most, wrong) != HIER_OK || !wrong.empty()) return "equal blocks: " + wrong;
    }
    return "";
}

void test_blocks_that_differ(void**)
{
    for (const Shape& shape : shapes) {
        for (const int route : routes) {
            for (const std::size_t eager_bytes : {0u, 2000u}) {
                // At such a rate the model spreads blocks of any size.
                for (const double link_rate : {0.0, 0.001}) {
                    expect_no_reason(keep(first_fault(run_ranks(shape.ranks, [&](ForkedRank& self) {
                        hier_config config = config_for_tests();
                        config.ranks_per_node = shape.ranks_per_node;
                        config.inter = route;
                        config.chunk_bytes = 64 << 10;
                        config.eager_bytes = eager_bytes;
                        config.link_rate = link_rate;
                        TeamRank team(self, config);
                        const auto fault = make_calls(team, shape.ranks);
                        team.end();
                        return fault;
                    }))));
                }
            }
        }
    }
}

// A call of which a rank thinks that it has other blocks. The others may be as many bytes in all.
void test_ranks_that_disagree(void**)
{
    for (const int ranks_per_node : {0, 2}) {
        for (const std::size_t most : {800u, 300001u}) {
            for (const std::size_t eager_bytes : {0u, 2000u}) {
                for (const bool are_as_many : {false, true}) {
                    expect_no_reason(
                        keep(first_fault(run_ranks(4, [&](ForkedRank& self) -> std::string {
                            hier_config config = config_for_tests();
                            config.ranks_per_node = ranks_per_node;
                            config.eager_bytes = eager_bytes;
                            TeamRank team(self, config);
                            std::string wrong;
                            std::vector<hier_block> blocks = make_blocks(4, Sizes::linear, most);
                            if (self.rank() == 1) blocks[2].bytes++;
                            if (self.rank() == 1 && are_as_many) {
                                blocks[3].bytes--;
                                blocks[3].offset++;
                            }
                            const int code = team.call_blocks(blocks, wrong);
                            if (code == HIER_ERR_MISMATCH || code == HIER_ERR_PEER) return "";
                            return hier_strerror(code) + std::string(", ") + wrong;
                        }))));
                }
            }
        }
    }
}

// Each rank thinks that the other one sends all, so nobody sends anything. On the rail a rank that puts nothing
// does not look at announcements.
void test_ranks_that_send_nothing(void**)
{
    for (const int ranks_per_node : {0, 1}) {
        for (const std::size_t bytes : {8u, 300001u}) {
            if (ranks_per_node == 1 && bytes > 8) continue;
            expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
                hier_config config = config_for_tests();
                config.ranks_per_node = ranks_per_node;
                config.eager_bytes = 2000;
                TeamRank team(self, config);
                std::string wrong;
                std::vector<hier_block> blocks(2);
                blocks[static_cast<std::size_t>(1 - self.rank())].bytes = bytes;
                if (self.rank() == 1) blocks[1].offset = bytes;
                const int code = team.call_blocks(blocks, wrong);
                if (code == HIER_ERR_MISMATCH || code == HIER_ERR_PEER) return "";
                return hier_strerror(code) + std::string(", ") + wrong;
            }))));
        }
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_that_differ),
        cmocka_unit_test(test_ranks_that_disagree),
        cmocka_unit_test(test_ranks_that_send_nothing),
    };
    return hier::test::run_cases(argc, argv, "team_blocks", tests);
}
