// SPDX-License-Identifier: BSD-3-Clause
// Teams through the C interface: their calls, their settings, and what is refused.
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// ---- calls

std::string make_calls(TeamRank& team, const std::vector<std::size_t>& sizes)
{
    std::string wrong;
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    for (const std::size_t bytes : sizes) {
        const int code = team.call(bytes, wrong);
        if (code != HIER_OK)
            return std::string(hier_strerror(code)) + ": " + ForkedRank::log_lines();
        if (!wrong.empty()) return wrong;
    }
    return "";
}

// ranks, ranks per node
constexpr int shapes[][2] = {{2, 0}, {2, 1}, {4, 2}, {3, 2}, {5, 2}};

void run_calls(std::size_t eager_bytes, Where where = Where::current())
{
    for (const auto& shape : shapes) {
        const int ranks = shape[0], ranks_per_node = shape[1];
        for (const int inter : {HIER_INTER_DIRECT, HIER_INTER_RING, HIER_INTER_BUNDLES}) {
            for (const int intra : {HIER_INTRA_CMA, HIER_INTRA_SHM}) {
                const char* const reason = keep(first_fault(run_ranks(ranks, [&](ForkedRank& self) {
                    hier_config config = config_for_tests();
                    config.ranks_per_node = ranks_per_node;
                    config.inter = inter;
                    config.intra = intra;
                    config.chunk_bytes = 64 << 10;
                    config.eager_bytes = eager_bytes;
                    TeamRank team(self, config);
                    const auto fault = make_calls(team, {1, 100, 70001, 300000, 1});
                    team.end();
                    return fault;
                })));
                expect_no_reason(reason, where);
            }
        }
    }
}

void test_calls(void**) { run_calls(0); }
// First only the small calls are eager. Then all are, with several messages for each put.
void test_eager_calls(void**)
{
    run_calls(100);
    run_calls(1 << 20);
}

// Large calls are moved in parts that leave gaps in the receive buffers.
void test_calls_in_parts(void**)
{
    for (const auto& shape : shapes) {
        for (const int inter : {HIER_INTER_DIRECT, HIER_INTER_RING, HIER_INTER_BUNDLES}) {
            expect_no_reason(keep(first_fault(run_ranks(shape[0], [&](ForkedRank& self) {
                hier_config config = config_for_tests();
                config.ranks_per_node = shape[1];
                config.inter = inter;
                config.chunk_bytes = 5000;
                TeamRank team(self, config);
                std::string wrong;
                for (const std::size_t part : {100u, 4096u, 70001u}) {
                    for (int place = 0; place < 2 && wrong.empty(); place++)
                        if (team.call_in_parts(10001, part, wrong) != HIER_OK)
                            wrong = "a part failed: " + ForkedRank::log_lines();
                }
                team.end();
                return wrong;
            }))));
        }
    }
}

void pass_sizes_that_differ(int ranks_per_node, std::size_t eager_bytes,
                            Where where = Where::current())
{
    const char* const reason = keep(first_fault(run_ranks(3, [&](ForkedRank& self) -> std::string {
        hier_config config = config_for_tests();
        config.ranks_per_node = ranks_per_node;
        config.eager_bytes = eager_bytes;
        TeamRank team(self, config);
        std::string wrong;
        const int code = team.call(self.rank() == 1 ? 101 : 100, wrong);
        if (code != HIER_ERR_MISMATCH && code != HIER_ERR_PEER) return hier_strerror(code);
        if (team.start_only() != code) return "a broken team takes calls";
        return "";
    })));
    expect_no_reason(reason, where);
}

void test_sizes_that_differ(void**)
{
    // On nodes of one rank only the messages tell the size, and all of these fit into the buffers.
    for (const int ranks_per_node : {2, 1}) {
        for (const std::size_t eager_bytes : std::vector<std::size_t>{0, 100, 1000})
            pass_sizes_that_differ(ranks_per_node, eager_bytes);
    }
}

// A peer may still send to a team that is gone. The bytes must not land in memory that somebody
// else has by now.
void test_teams_that_come_and_go(void**)
{
    for (const char* transports : {"tcp", "tcp,self"}) {
        expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) {
            hier_config config = config_for_tests();
            config.net_transports = transports;
            std::string fault;
            for (int team = 0; team < 30 && fault.empty(); team++) {
                TeamRank brief(self, config);
                fault = make_calls(brief, {100, 100});
                brief.leave();
            }
            TeamRank last(self, config);
            if (fault.empty()) fault = make_calls(last, {100});
            last.end();
            return fault;
        }))));
    }
}

void test_description(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        TeamRank team(self, config_for_tests());
        const auto fault = make_calls(team, {10});
        if (!fault.empty()) return fault;
        return std::strstr(team.description(), "2 ranks on 2 nodes (1,1), 1 rail") != nullptr
                   ? ""
                   : team.description();
    }))));
}

// ---- settings

struct Setting {
    const char* name;
    void (*change)(hier_config&);
};
constexpr Setting must_be_equal[] = {
    {"coll_hier_chunk_bytes", [](hier_config& c) { c.chunk_bytes = 4096; }},
    {"coll_hier_eager_bytes", [](hier_config& c) { c.eager_bytes = 1; }},
    {"coll_hier_ranks_per_node", [](hier_config& c) { c.ranks_per_node = 2; }},
    {"coll_hier_inter", [](hier_config& c) { c.inter = HIER_INTER_RING; }},
    {"coll_hier_intra", [](hier_config& c) { c.intra = HIER_INTRA_SHM; }},
};

void test_settings_that_differ(void**)
{
    for (const auto& setting : must_be_equal) {
        for (int odd = 0; odd < 3; odd++) {
            const auto fault = first_fault(run_ranks(3, [&](ForkedRank& self) -> std::string {
                hier_config config = config_for_tests();
                config.ranks_per_node = 0;
                config.log_level = HIER_LOG_ERROR;
                if (self.rank() == odd) setting.change(config);
                TeamRank team(self, config);
                if (team.created() != HIER_ERR_SETUP) return hier_strerror(team.created());
                const std::string line = std::string(setting.name) +
                                         " differs between rank 0 and rank " +
                                         (odd == 0 ? "1" : std::to_string(odd));
                // Only rank 0 logs the difference.
                return ForkedRank::is_logged(line) == (self.rank() == 0)
                           ? ""
                           : "told by the wrong ranks: " + ForkedRank::log_lines();
            }));
            expect_no_reason(fault.empty() ? nullptr
                                           : keep(std::string(setting.name) + ": " + fault));
        }
    }
}

constexpr Setting may_differ[] = {
    {"coll_hier_depth", [](hier_config& c) { c.depth = 1; }},
    {"coll_hier_net_rate", [](hier_config& c) { c.net_rate = 0.01; }},
    {"coll_hier_link_rate", [](hier_config& c) { c.link_rate = 0.01; }},
    {"coll_hier_timeout", [](hier_config& c) { c.timeout = 5; }},
    {"coll_hier_timeout_action", [](hier_config& c) { c.timeout_action = HIER_TIMEOUT_REPORT; }},
    {"coll_hier_nics", [](hier_config& c) { c.nics = 1; }},
    {"coll_hier_gpu_direct", [](hier_config& c) { c.gpu_direct = HIER_GPU_DIRECT_OFF; }},
};

// All ranks must agree which module serves a call, even if they disagree on other settings.
void test_least_bytes_are_equal(void**)
{
    for (const auto& setting : may_differ) {
        for (const std::size_t eager_bytes : {0U, 32768U}) {
            const auto fault = first_fault(run_ranks(6, [&](ForkedRank& self) -> std::string {
                hier_config config = config_for_tests();
                // With these values a depth changes the results of the model.
                config.ranks_per_node = 2;
                config.net_rate = 1;
                config.depth = 0;
                config.chunk_bytes = 0;
                config.eager_bytes = eager_bytes;
                if (self.rank() == 1) setting.change(config);
                TeamRank team(self, config);
                if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
                const auto all = self.group().collect(team.min_bytes());
                team.end();
                for (const std::size_t least : all)
                    if (least != all[0])
                        return std::to_string(least) + " bytes, and " + std::to_string(all[0]);
                return "";
            }));
            expect_no_reason(fault.empty() ? nullptr
                                           : keep(std::string(setting.name) + ": " + fault));
        }
    }
}

// One rank alone is above the limit. The others' messages are there before this rank enters its
// call.
void test_sizes_on_both_sides_of_the_eager_limit(void**)
{
    for (int odd = 0; odd < 3; odd++) {
        expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) -> std::string {
            hier_config config = config_for_tests();
            config.eager_bytes = 100;
            TeamRank team(self, config);
            for (int i = 0; i < 300 && self.rank() == odd; i++) {
                (void)hier_progress();
                usleep(100);
            }
            std::string wrong;
            const int code = team.call(self.rank() == odd ? 101 : 100, wrong);
            return code == HIER_ERR_MISMATCH || code == HIER_ERR_PEER ? "" : hier_strerror(code);
        }))));
    }
}

// The network of one rank is slower. All ranks choose by the slowest. Otherwise a rank would wait
// for other chunks than its peer sends.
void test_rates_that_differ(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(4, [](ForkedRank& self) -> std::string {
        hier_config config = config_for_tests();
        config.chunk_bytes = 0;
        config.depth = 0;
        config.net_rate = self.rank() == 2 ? 0.001 : 1000;
        TeamRank team(self, config);
        const auto fault = make_calls(team, {1, 70001, 300000, 1000000});
        const std::string description = team.description();
        team.end();
        if (!fault.empty() || self.rank() != 0) return fault;
        return description.find("0.001 GB/s (stated)") != std::string::npos &&
                       ForkedRank::is_logged("team: 300000 bytes a rank: ") &&
                       ForkedRank::is_logged("in flight; expected 9")
                   ? ""
                   : description + "; " + ForkedRank::log_lines();
    }))));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_least_bytes_are_equal),
        cmocka_unit_test(test_eager_calls),
        cmocka_unit_test(test_calls_in_parts),
        cmocka_unit_test(test_sizes_that_differ),
        cmocka_unit_test(test_teams_that_come_and_go),
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_settings_that_differ),
        cmocka_unit_test(test_sizes_on_both_sides_of_the_eager_limit),
        cmocka_unit_test(test_rates_that_differ),
    };
    return hier::test::run_cases(argc, argv, "team", tests);
}
