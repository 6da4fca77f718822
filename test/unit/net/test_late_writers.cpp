// SPDX-License-Identifier: BSD-3-Clause
// After an error nobody may write into the buffers of a call that has returned. That holds for a
// rank that is about to write when the error is raised, and for a rank that enters the call later.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/system.hpp"
#include "test/support/wrapped/ucx.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t bytes = 100000;
constexpr std::byte own{0x5a};  // what the application writes after the call

// Memory that all ranks share. It is made before the ranks are forked.
struct Scene {
    std::atomic<int> writers;   // ranks that are about to write
    std::atomic<int> returned;  // ranks that have left the call
};
Scene& scene()
{
    static void* const at =
        mmap(nullptr, sizeof(Scene), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return *static_cast<Scene*>(at);
}

void begin_scene()
{
    scene().writers = 0;
    scene().returned = 0;
}

struct Network {
    const char* name;
    int ranks_per_node;
    const char* transports;  // the core orders words over each of them in another way
};
constexpr Network networks[] = {
    {"node", 0, "tcp"},
    {"lane", 1, "tcp"},
    {"flush", 1, "tcp,self"},
    {"fence", 1, "rc,dc"},
};

hier_config config_of(const Network& network)
{
    hier_config config = config_for_tests();
    config.intra = HIER_INTRA_CMA;  // cells would keep writers away from the receive buffer
    config.ranks_per_node = network.ranks_per_node;
    config.net_transports = network.transports;
    ucx.transports = "tcp";
    return config;
}

// Delays a write until a rank has left the call, or for 200 ms.
void linger()
{
    before_writev = ucx.before_large_put = nullptr;
    scene().writers++;
    for (int i = 0; i < 200 && scene().returned == 0; i++) usleep(1000);
}

void be_late() { before_writev = ucx.before_large_put = linger; }

template <int others> bool are_writing() { return scene().writers >= others; }

// Fails as soon as the others are writing. Waits by await(), because they may need this rank's
// progress to begin.
template <int others> void fail_writev()
{
    before_writev = nullptr;
    (void)await(are_writing<others>);
    writev_mode = Writev::is_refused;
}

template <int others> void fail_put()
{
    ucx.before_large_put = nullptr;
    ucx.may_fail = are_writing<others>;
    ucx.fail_nth(UcxCall::put, 1, UcxFailure::later);
}

template <int others> void break_off()
{
    before_writev = fail_writev<others>;
    ucx.before_large_put = fail_put<others>;
}

void meet(const ForkedRank& self) { (void)self.group().collect(0); }

// "" if nobody has written there since.
std::string is_own(const std::vector<std::byte>& memory)
{
    for (std::size_t i = 0; i < memory.size(); i++) {
        if (memory[i] != own) return "byte " + std::to_string(i) + " was written after the call";
    }
    return "";
}

struct Call {
    explicit Call(const ForkedRank& self)
        : send(bytes), receive(bytes * static_cast<std::size_t>(self.size()))
    {
    }
    int make(TeamRank& team)
    {
        const int code = team.call_raw(send.data(), receive.data(), bytes);
        std::fill(receive.begin(), receive.end(), own);
        scene().returned++;
        return code;
    }
    std::vector<std::byte> send, receive;
};

std::string end(ForkedRank& self, TeamRank& team, const Call& call)
{
    meet(self);  // now everything has arrived
    team.end();
    return is_own(call.receive);
}

// Rank 0 fails while rank 1 writes to rank 2 or to rank 0.
std::string write_late(ForkedRank& self, const Network& network)
{
    Call call(self);  // outlives the team, because peers may still write there
    TeamRank team(self, config_of(network));
    std::string wrong;
    if (team.created() != HIER_OK || team.call(bytes, wrong) != HIER_OK || !wrong.empty())
        return "before: " + wrong + ForkedRank::log_lines();
    meet(self);
    if (self.rank() == 0) break_off<1>();
    if (self.rank() == 1) be_late();
    const int code = call.make(team);
    // A rank that has all of its bytes hears of the failure in the next call.
    const bool is_well =
        self.rank() == 0 ? code == HIER_ERR_TRANSPORT : code == HIER_ERR_PEER || code == HIER_OK;
    if (!is_well) return hier_strerror(code) + (": " + ForkedRank::log_lines());
    if (ForkedRank::is_logged("not safe to reuse"))
        return "it gives up waiting: " + ForkedRank::log_lines();
    return end(self, team, call);
}

void test_writer_that_is_late(void**)
{
    std::string faults;
    for (const Network& network : networks) {
        begin_scene();
        const auto fault =
            first_fault(run_ranks(3, [&](ForkedRank& self) { return write_late(self, network); }));
        if (!fault.empty()) faults += network.name + (": " + fault) + '\n';
    }
    expect_no_reason(keep(faults));
}

enum class Meanwhile {
    computes,  // the late rank makes no calls, so it makes no progress
    turns,     // the late rank is in other calls of MPI, which make progress
    gathers,   // the late rank is in an allgather on another team, which the others enter later
    leaves     // the late rank has freed the team
};

bool others_leave(Meanwhile does)
{
    if (does != Meanwhile::computes) return await([] { return scene().returned >= 2; });
    for (int i = 0; i < 20000 && scene().returned < 2; i++) usleep(1000);
    return scene().returned >= 2;
}

// The last rank enters after the others have left, or never.
std::string enter_late(ForkedRank& self, const Network& network, Meanwhile does)
{
    Call call(self);  // outlives the team, because peers may still write there
    TeamRank team(self, config_of(network)), another(self, config_of(network));
    std::string wrong;
    if (team.created() != HIER_OK || another.created() != HIER_OK ||
        team.call(bytes, wrong) != HIER_OK || !wrong.empty())
        return "before: " + wrong + ForkedRank::log_lines();
    meet(self);
    const bool is_late = self.rank() == 2;
    const auto gather = [&]() -> std::string {
        writev_mode = Writev::works;
        const int code = another.call(bytes, wrong);
        if (code != HIER_OK) return hier_strerror(code) + (": " + ForkedRank::log_lines());
        return scene().returned >= 2 ? wrong : "it did not wait for the others";
    };
    if (is_late && does == Meanwhile::leaves) team.leave();
    if (is_late && does == Meanwhile::gathers) wrong = gather();
    if (!wrong.empty()) return "the other call: " + wrong;
    if (is_late && !others_leave(does)) return "the others wait for it";
    if (self.rank() == 0) break_off<0>();
    const bool enters = !is_late || does != Meanwhile::leaves;
    std::fill(call.receive.begin(), call.receive.end(), own);
    const int code = enters ? call.make(team) : HIER_ERR_PEER;
    if (code != (self.rank() == 0 ? HIER_ERR_TRANSPORT : HIER_ERR_PEER))
        return hier_strerror(code) + (": " + ForkedRank::log_lines());
    if (!is_late && does == Meanwhile::gathers && !others_leave(does)) return "not both";
    if (!is_late && does == Meanwhile::gathers) wrong = gather();
    if (!wrong.empty()) return "the other call: " + wrong;
    // Inside a node the others know that the late rank is not in the call. Over a network the late
    // rank must say so, and that needs its progress.
    const bool is_warned = ForkedRank::is_logged("not safe to reuse");
    const bool is_unknown = network.ranks_per_node == 1 && does == Meanwhile::computes;
    if (is_warned != (is_unknown && !is_late)) return ForkedRank::log_lines();
    meet(self);
    if (enters) team.leave();
    return end(self, another, call);
}

void expect_late(Meanwhile does, Where where = Where::current())
{
    std::string faults;
    for (const Network& network : networks) {
        begin_scene();
        const auto fault = first_fault(
            run_ranks(3, [&](ForkedRank& self) { return enter_late(self, network, does); }));
        if (!fault.empty()) faults += network.name + (": " + fault) + '\n';
    }
    expect_no_reason(keep(faults), where);
}

void test_rank_that_enters_late(void**) { expect_late(Meanwhile::computes); }
void test_rank_that_is_elsewhere(void**) { expect_late(Meanwhile::turns); }
void test_rank_in_another_call(void**) { expect_late(Meanwhile::gathers); }
void test_rank_that_has_left(void**) { expect_late(Meanwhile::leaves); }

}  // namespace

int main(int argc, char** argv)
{
    (void)scene();
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_writer_that_is_late),    cmocka_unit_test(test_rank_that_enters_late),
        cmocka_unit_test(test_rank_that_is_elsewhere), cmocka_unit_test(test_rank_in_another_call),
        cmocka_unit_test(test_rank_that_has_left),
    };
    return hier::test::run_cases(argc, argv, "late_writers", tests);
}
