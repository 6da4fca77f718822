// SPDX-License-Identifier: BSD-3-Clause
// A signal never overtakes its data. A buffer that moves gets a new key. Calls leave nothing
// behind.
#include <sys/mman.h>

#include <cstddef>
#include <string>
#include <vector>

#include "net/ucx/ucx_config.hpp"
#include "test/support/forked.hpp"
#include "test/support/team_rank.hpp"
#include "test/support/wrapped/allocations.hpp"
#include "test/support/wrapped/clock.hpp"
#include "test/support/wrapped/ucx.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// Makes all calls, even after an error, because the others make them, too.
std::string make_calls(TeamRank& team, int calls, std::size_t bytes)
{
    std::string fault;
    if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    for (int i = 0; i < calls; i++) {
        std::string wrong;
        const int code = team.call(bytes, wrong);
        if (code != HIER_OK)
            return std::string(hier_strerror(code)) + ": " + ForkedRank::log_lines();
        if (fault.empty()) fault = wrong;
    }
    return fault;
}

hier_config config_over(const char* transports, const char* devices = "lo")
{
    hier_config config = config_for_tests();
    config.net_transports = transports;
    config.net_devices = devices;
    config.chunk_bytes = 16 << 10;
    return config;
}

// ---- order

// Transports between processes of one host have two lanes in UCX: CMA and shared memory.
void test_local_transports(void**)
{
    for (const char* transports : {"posix,cma", "sm"}) {
        expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) {
            TeamRank team(self, config_over(transports, "auto"));
            const auto fault = make_calls(team, 30, 100000);
            team.end();
            return fault;
        }))));
    }
}

// The core orders by a flush over transports that it does not know, and by a fence over RDMA.
constexpr const char* ordered[] = {"tcp,self", "rc,dc"};

std::string call_over(ForkedRank& self, Lanes lanes, const char* transports)
{
    ucx.transports = "tcp";
    TeamRank team(self, config_over(transports));
    ucx.lanes = lanes;
    const auto fault = make_calls(team, 20, 100000);
    ucx.lanes = Lanes::one;
    team.end();
    return fault;
}

// Data lags behind words, as on several lanes. The core has to flush or fence before it signals.
void test_no_signal_before_its_data(void**)
{
    for (const char* transports : ordered) {
        expect_no_reason(keep(first_fault(run_ranks(
            2, [&](ForkedRank& self) { return call_over(self, Lanes::several, transports); }))));
    }
}

// The test above can fail: without flush and fence a signal comes before its data.
void test_signal_before_its_data_is_caught(void**)
{
    for (const char* transports : ordered) {
        const Ends ends = run_ranks(2, [&](ForkedRank& self) {
            return call_over(self, Lanes::several_unordered, transports);
        });
        const bool is_caught = ends[0].find("a wrong byte") != std::string::npos ||
                               ends[1].find("a wrong byte") != std::string::npos;
        assert_true(is_caught);
    }
}

// Some hosts order the writes of devices loosely. There a word behind a flush could still pass data
// that was acknowledged. A fence makes the word a strict write. But a fence does not cover puts
// that UCX cannot post yet, so the core keeps fewer puts in flight.
void test_flushed_words_are_fenced(void**)
{
    struct Row {
        const char* transports;
        int depth;
        bool flushes;
        const char* says;
    };
    // The weak fences of some UCX versions do not order. With these the core flushes.
    const bool orders = orders_by_weak_fence(ucx_version());
    for (const Row row : {Row{"tcp,self", 1024, true, "1024 in flight"},
                          {"rc,dc", 64, !orders, "64 in flight"},
                          {"rc,dc", 1024, !orders, orders ? "100 in flight" : "1024 in flight"},
                          {"dc", 1024, !orders, orders ? "50 in flight" : "1024 in flight"}}) {
        expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
            ucx.transports = "tcp";
            hier_config config = config_over(row.transports);
            config.depth = row.depth;
            TeamRank team(self, config);
            const auto fault = make_calls(team, 5, 100000);
            const std::size_t flushes = ucx.calls(UcxCall::flush);
            const std::size_t fences = ucx.calls(UcxCall::fence);
            team.end();
            if (!fault.empty()) return fault;
            if (!ForkedRank::is_logged(row.says) && self.rank() == 0)
                return ForkedRank::log_lines();
            if ((flushes > 0) != row.flushes) return std::to_string(flushes) + " flushes";
            return fences > 0 && fences >= flushes ? "" : std::to_string(fences) + " fences";
        }))));
    }
}

// Making UCX's cache of registrations can hang. So the core turns the cache off over TCP, which
// registers nothing.
void test_no_cache_over_tcp(void**)
{
    for (const char* transports : {"tcp", "rc,dc"}) {
        expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
            ucx.transports = "tcp";
            TeamRank team(self, config_over(transports));
            if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
            const bool is_off = ucx.settings.contains("RCACHE_ENABLE");
            if (is_off != (transports[0] == 't')) return transports;
            return is_off && ucx.settings["RCACHE_ENABLE"] != "n" ? "it is on" : "";
        }))));
    }
}

// With dynamic connections UCX may lose a fence. So a host must not order writes loosely there.
void test_strict_writes_of_dynamic_connections(void**)
{
    for (const char* transports : {"rc,dc", "dc"}) {
        expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
            ucx.transports = "tcp";
            TeamRank team(self, config_over(transports));
            if (team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
            const auto set = ucx.settings.find("IB_PCI_RELAXED_ORDERING");
            const std::string value = set == ucx.settings.end() ? "" : set->second;
            return value == (transports[0] == 'd' ? "no" : "") ? "" : transports + (": " + value);
        }))));
    }
}

// Small calls send one message to each peer. A second, empty message follows only if UCX has kept
// something back. Without it nobody would send this on if the rank makes no more calls.
void test_what_is_kept_back_is_sent_on(void**)
{
    for (const bool keeps_back : {false, true}) {
        expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
            constexpr int calls = 10;
            ucx.keeps_back = keeps_back;
            hier_config config = config_over("tcp");
            config.eager_bytes = 100;
            TeamRank team(self, config);
            const auto before = ucx.calls(UcxCall::message);
            const auto fault = make_calls(team, calls, 100);
            const auto sent = ucx.calls(UcxCall::message) - before;
            team.end();
            if (!fault.empty()) return fault;
            const std::size_t wanted = keeps_back ? 2 * calls : calls;
            return sent == wanted ? ucx.leaks() : std::to_string(sent) + " messages";
        }))));
    }
}

// ---- buffers

std::byte* map(std::size_t bytes, void* at, int protection = PROT_READ | PROT_WRITE)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0);
    void* mapped = mmap(at, bytes, protection, flags, -1, 0);
    return mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

// Reserved addresses, where no other memory comes to lie.
class Addresses {
public:
    explicit Addresses(std::size_t bytes) : base_(map(bytes, nullptr, PROT_NONE)) {}

    std::byte* take(std::size_t offset, std::size_t bytes) { return map(bytes, base_ + offset); }
    static void free(std::byte* memory, std::size_t bytes)
    {
        munmap(memory, bytes);
        map(bytes, memory, PROT_NONE);
    }

private:
    std::byte* base_;
};

// The keys that this rank unpacks: one for the peer's board, one for the peer's buffer, and one
// more each time the peer's buffer moves.
void test_keys_follow_the_buffer(void**)
{
    for (const char* transports : {"tcp", "posix,cma"}) {
        expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
            constexpr std::size_t bytes = 50000;
            TeamRank team(self, config_over(transports, transports[0] == 't' ? "lo" : "auto"));
            if (team.created() != HIER_OK) return "no team";
            std::vector<std::byte> send(bytes);
            std::string wrong;
            constexpr std::size_t elsewhere = 1 << 20;
            Addresses addresses(2 * elsewhere);
            std::byte* buffer = addresses.take(0, 2 * bytes);
            const std::size_t moves[] = {2, 2, 2, 3, 4, 4};  // keys after each call
            for (std::size_t call = 0; call < std::size(moves); call++) {
                if (call == 3 || call == 4) {
                    Addresses::free(buffer, 2 * bytes);
                    buffer = addresses.take(call == 3 ? elsewhere : 0, 2 * bytes);
                }
                if (team.call(bytes, send, buffer, wrong) != HIER_OK || !wrong.empty())
                    return "call " + std::to_string(call) + ' ' + wrong;
                if (ucx.calls(UcxCall::rkey_unpack) != moves[call])
                    return std::to_string(ucx.calls(UcxCall::rkey_unpack)) + " keys after call " +
                           std::to_string(call);
            }
            team.end();
            return ucx.leaks();
        }))));
    }
}

// Memory was freed and allocated again at the same address, so the address does not show the
// change.
void test_same_address_new_memory(void**)
{
    for (const char* transports : {"tcp", "posix,cma"}) {
        expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
            constexpr std::size_t bytes = 50000;
            TeamRank team(self, config_over(transports, transports[0] == 't' ? "lo" : "auto"));
            if (team.created() != HIER_OK) return "no team";
            std::vector<std::byte> send(bytes);
            std::string wrong;
            Addresses addresses(2 * bytes);
            for (int call = 0; call < 10; call++) {
                std::byte* const buffer = addresses.take(0, 2 * bytes);
                if (team.call(bytes, send, buffer, wrong) != HIER_OK || !wrong.empty())
                    return wrong;
                Addresses::free(buffer, 2 * bytes);
            }
            team.end();
            return ucx.leaks();
        }))));
    }
}

// After the first calls nothing is allocated, except when more is in flight than ever before.
void test_calls_do_not_grow_memory(void**)
{
    for (const char* transports : {"tcp", "tcp,self"}) {
        expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
            constexpr std::size_t bytes = 20000;
            constexpr int calls = 400;
            ucx.transports = "tcp";
            TeamRank team(self, config_over(transports));
            if (team.created() != HIER_OK) return "no team";
            std::vector<std::byte> send(bytes), receive(2 * bytes);
            std::string wrong;
            std::size_t before = 0;
            for (int call = 0; call < calls; call++) {
                if (call == 20) before = allocations;
                if (team.call(bytes, send, receive.data(), wrong) != HIER_OK || !wrong.empty())
                    return wrong;
            }
            const std::size_t made = allocations - before;
            if (allocations == 0) return "nothing is counted";
            team.end();
            if (made > calls / 10)
                return std::to_string(made) + " allocations in " + std::to_string(calls) + " calls";
            return ucx.leaks();
        }))));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    hier::test::use_clock(hier::test::ClockMode::fast);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_local_transports),
        cmocka_unit_test(test_no_signal_before_its_data),
        cmocka_unit_test(test_signal_before_its_data_is_caught),
        cmocka_unit_test(test_flushed_words_are_fenced),
        cmocka_unit_test(test_no_cache_over_tcp),
        cmocka_unit_test(test_strict_writes_of_dynamic_connections),
        cmocka_unit_test(test_what_is_kept_back_is_sent_on),
        cmocka_unit_test(test_keys_follow_the_buffer),
        cmocka_unit_test(test_same_address_new_memory),
        cmocka_unit_test(test_calls_do_not_grow_memory),
    };
    return hier::test::run_cases(argc, argv, "ucx_order", tests);
}
