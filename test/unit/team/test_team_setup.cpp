// SPDX-License-Identifier: BSD-3-Clause
// Set-up that fails on one rank fails on all ranks. And a team ends without the descriptors that
// UCX wants.
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/system.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// All ranks get HIER_ERR_SETUP. The culprit logs `cause`.
std::string fail_setup(ForkedRank& self, const hier_config& config, bool is_culprit,
                       const std::string& cause)
{
    TeamRank team(self, config);
    if (team.created() != HIER_ERR_SETUP) return hier_strerror(team.created());
    return !is_culprit || ForkedRank::is_logged(cause) ? "" : ForkedRank::log_lines();
}

// Ranks 0 and 1 are one node, 2 and 3 another.
void test_node_level_that_fails(void**)
{
    for (int culprit = 0; culprit < 4; culprit++) {
        expect_no_reason(keep(first_fault(run_ranks(4, [&](ForkedRank& self) {
            hier_config config = config_for_tests();
            config.ranks_per_node = 2;
            memfd_call.fail_all(ENOSYS);
            if (self.rank() == culprit) shm_open_call.fail_all(EMFILE);
            return fail_setup(self, config, self.rank() == culprit, "setting up the node level: ");
        }))));
    }
}

// The kernel ends a process that exceeds the limit, with shared memory too.
// Fault: the limit of file sizes is small | setrlimit | no team on any rank
void test_file_size_limit(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) {
        hier_config config = config_for_tests();
        config.ranks_per_node = 2;
        config.intra = HIER_INTRA_SHM;
        const rlimit little{4096, RLIM_INFINITY};
        if (setrlimit(RLIMIT_FSIZE, &little) != 0) std::abort();
        return fail_setup(self, config, self.rank() == 0, "File too large");
    }))));
}

// Leaves `but` descriptors. The others stay open until the process ends.
void use_up_descriptors(std::size_t but)
{
    const rlimit few{256, 256};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) std::abort();
    std::vector<int> taken;
    for (int next = dup(STDERR_FILENO); next >= 0; next = dup(STDERR_FILENO)) taken.push_back(next);
    for (std::size_t i = 0; i < but; i++) close(taken[i]);
}

// UCX would end a process that has too few descriptors.
// Fault: few descriptors are left | setrlimit | a team on every rank, or on none
void test_few_descriptors(void**)
{
    bool is_refused = false;
    for (std::size_t left = 4; left <= 36; left++) {
        const auto faults = run_ranks(2, [&](ForkedRank& self) -> std::string {
            hier_config config = config_for_tests();
            config.ranks_per_node = 1;
            if (self.rank() == 1) use_up_descriptors(left);
            TeamRank team(self, config);
            if (team.created() == HIER_OK) {
                team.end();
                return "";
            }
            if (team.created() != HIER_ERR_SETUP) return hier_strerror(team.created());
            return self.rank() == 0 || ForkedRank::is_logged("descriptors, and this process gets")
                       ? "refused"
                       : ForkedRank::log_lines();
        });
        const std::string fault = first_fault(faults);
        is_refused = is_refused || fault.find("refused") != std::string::npos;
        if (fault.find("refused") == std::string::npos) expect_no_reason(keep(fault));
    }
    assert_true(is_refused);
}

std::size_t free_descriptors()
{
    std::vector<int> taken;
    for (int next = dup(STDERR_FILENO); next >= 0; next = dup(STDERR_FILENO)) taken.push_back(next);
    for (const int descriptor : taken) close(descriptor);
    return taken.size();
}

// The same while peers connect. A rank takes in as many connections as it makes, all at once.
// Fault: few descriptors are left | setrlimit | a team on every rank, or on none
void test_few_descriptors_for_peers(void**)
{
    constexpr std::size_t few[] = {14, 16, 18, 20, 24, 30, 48};
    int refused = 0, made = 0;
    for (const std::size_t left : few) {
        for (const bool is_everybody : {false, true}) {
            const auto faults = run_ranks(10, [&](ForkedRank& self) -> std::string {
                hier_config config = config_for_tests();
                config.ranks_per_node = 1;
                if (is_everybody || self.rank() == 0) use_up_descriptors(left);
                TeamRank team(self, config);
                // The application gets back the descriptors of the attempt.
                if (team.created() == HIER_ERR_SETUP)
                    return is_everybody && free_descriptors() + 2 < left
                               ? std::to_string(free_descriptors()) + " are left"
                               : "refused";
                if (team.created() != HIER_OK) return hier_strerror(team.created());
                team.end();
                return "made";
            });
            const bool is_refused = faults[0] == "refused";
            for (const std::string& fault : faults)
                assert_string_equal(fault.c_str(), is_refused ? "refused" : "made");
            (is_refused ? refused : made)++;
        }
    }
    assert_true(refused > 0 && made > 0);
}

// The same when a team ends its connections.
void test_end_without_descriptors(void**)
{
#ifdef __SANITIZE_ADDRESS__
    skip();  // the sanitizers need descriptors themselves: they test memory by a pipe
#endif
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        hier_config config = config_for_tests();
        config.ranks_per_node = 1;
        TeamRank team(self, config);
        std::string wrong;
        const int code = team.call(100000, wrong);
        use_up_descriptors(0);
        team.end();
        return code == HIER_OK ? wrong : hier_strerror(code);
    }))));
}

// Fault: the named network device is missing | a name that nobody has | no team on any rank
void test_network_that_is_not_there(void**)
{
    for (int culprit = 0; culprit < 4; culprit++) {
        expect_no_reason(keep(first_fault(run_ranks(4, [&](ForkedRank& self) {
            hier_config config = config_for_tests();
            config.ranks_per_node = 2;
            if (self.rank() == culprit) config.net_devices = "nosuch0";
            return fail_setup(self, config, self.rank() == culprit, "coll_hier_net_devices");
        }))));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_node_level_that_fails),
        cmocka_unit_test(test_file_size_limit),
        cmocka_unit_test(test_few_descriptors),
        cmocka_unit_test(test_few_descriptors_for_peers),
        cmocka_unit_test(test_end_without_descriptors),
        cmocka_unit_test(test_network_that_is_not_there),
    };
    return hier::test::run_cases(argc, argv, "team set-up", tests);
}
