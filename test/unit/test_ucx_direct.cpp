// The network writes into device memory itself: what it wrote is flushed before it counts, memory
// that it cannot reach is staged, and no key outlives its memory. UCX goes over TCP, is told that
// this is RDMA, and says that it knows ROCm's memory, which is the simulated runtime's and here
// readable by the CPU.
#include <string>

#include "count_allocations.hpp"
#include "gpu_rank.hpp"
#include "team_rank.hpp"
#include "wrap_ucx.hpp"
#include "wrap_ucx_device.hpp"

#include "cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t shard = 100000;

hier_config config_for_direct(int setting = HIER_GPU_DIRECT_ON)
{
    hier_config config = config_for_tests();
    config.net_transports = "rc,dc";
    config.chunk_bytes = 16 << 10;
    config.gpu_direct = setting;
    return config;
}

Ends run(int ranks, const std::function<std::string(ForkedRank&)>& body)
{
    return run_ranks(ranks, [&](ForkedRank& self) {
        use_built_module();
        setenv("HIP_SIM_HIDDEN", "0", 1);
        setenv("HIP_SIM_DELAY_US", "20", 1);
        gives_success(hipSetDevice(self.rank()), "hipSetDevice");
        ucx.transports = "tcp";
        ucx.knows_rocm = true;
        ucx.hides_landings = true;
        return body(self);
    });
}

// A team and its buffers on the device.
struct DirectRank {
    explicit DirectRank(ForkedRank& self, const hier_config& config = config_for_direct())
        : ranks(static_cast<std::size_t>(self.size())), send(device_memory(shard)),
          receive(device_memory(ranks * shard)), team(self, config)
    {
    }
    ~DirectRank()
    {
        team.end();
        (void)hipFree(receive);
        (void)hipFree(send);
    }
    std::string call(std::size_t bytes = shard, bool in_place = false)
    {
        std::string wrong;
        const int code = team.call(bytes, in_place ? nullptr : send, receive, wrong);
        return code == HIER_OK ? wrong
                               : std::string(hier_strerror(code)) + ": " + ForkedRank::log_lines();
    }
    // At the same address.
    void allocate_anew(bool is_seen_by_ucx)
    {
        std::byte* const before = receive;
        gives_success(hipFree(receive), "freeing");
        if (is_seen_by_ucx) forget_shadow(before);
        receive = device_memory(ranks * shard);
        if (receive != before) throw std::runtime_error("the memory is elsewhere");
    }
    static bool is_staged() { return hip_sim_live("pinned") > 0; }

    std::size_t ranks;
    std::byte* send;
    std::byte* receive;
    TeamRank team;
};

std::string call_some(DirectRank& rank)
{
    if (rank.team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    for (int i = 0; i < 12; i++) {
        const std::size_t bytes[] = {shard, 1, 4097};
        const auto fault = rank.call(bytes[i % 3], i % 4 == 3);
        if (!fault.empty()) return fault;
    }
    return "";
}

// ---- flush

void test_landings_are_flushed_before_they_count(void**)
{
    for (const int route : {HIER_INTER_DIRECT, HIER_INTER_RING}) {
        expect_no_reason(keep(first_fault(run(3, [&](ForkedRank& self) -> std::string {
            hier_config config = config_for_direct();
            config.inter = route;
            DirectRank rank(self, config);
            if (const auto fault = call_some(rank); !fault.empty()) return fault;
            if (DirectRank::is_staged()) return "through pinned memory";
            return ucx.calls(UcxCall::get) > 0 ? "" : "no flush was made";
        }))));
    }
}

// Two devices a rank: connections over loopback.
void test_each_of_two_devices_is_flushed(void**)
{
    expect_no_reason(keep(first_fault(run(3, [&](ForkedRank& self) -> std::string {
        hier_config config = config_for_direct();
        config.net_transports = "tcp";
        config.net_devices = "lo,lo,lo,lo,lo,lo";
        DirectRank rank(self, config);
        if (const auto fault = call_some(rank); !fault.empty()) return fault;
        if (DirectRank::is_staged()) return "through pinned memory";
        return ucx.calls(UcxCall::get) > 0 && ucx.puts_of_second > 0 ? "" : "no flush was made";
    }))));
}

// The test above can fail: with the flush left out, what has been signalled is not there.
void test_flush_left_out_is_caught(void**)
{
    const Ends ends = run(2, [](ForkedRank& self) {
        ucx.reads_flush = false;
        DirectRank rank(self);
        return call_some(rank);
    });
    const bool is_caught = ends[0].find("a wrong byte") != std::string::npos ||
                           ends[1].find("a wrong byte") != std::string::npos;
    assert_true(is_caught);
}

// Nothing to flush where nothing lands in device memory.
void test_host_memory_is_not_flushed(void**)
{
    expect_no_reason(keep(first_fault(run(2, [](ForkedRank& self) -> std::string {
        DirectRank rank(self);
        std::vector<std::byte> receive(2 * shard);
        std::string wrong;
        if (rank.team.call(shard, rank.send, receive.data(), wrong) != HIER_OK) return "failed";
        if (!wrong.empty() || DirectRank::is_staged()) return wrong + " or staged";
        return ucx.calls(UcxCall::get) == 0 ? "" : "flushed";
    }))));
}

// ---- what is direct

void test_settings(void**)
{
    struct Row {
        int setting;
        bool knows;
        const char* says;
        const char* logs;
    };
    // (The UCX of Debian 12 is too old for auto.)
    for (const Row& row :
         {Row{HIER_GPU_DIRECT_ON, true, "device memory directly", ""},
          Row{HIER_GPU_DIRECT_ON, false, "pinned memory (UCX does not know ROCm memory here)",
              "coll_hier_gpu_direct is on, but UCX does not know ROCm memory here"},
          Row{HIER_GPU_DIRECT_OFF, true, "pinned memory (coll_hier_gpu_direct is off)", ""},
          Row{HIER_GPU_DIRECT_AUTO, false, "pinned memory (UCX does not know ROCm", ""}}) {
        expect_no_reason(keep(first_fault(run(2, [&](ForkedRank& self) -> std::string {
            ucx.knows_rocm = row.knows;
            DirectRank rank(self, config_for_direct(row.setting));
            if (const auto fault = call_some(rank); !fault.empty()) return fault;
            const std::string said = rank.team.description();
            if (said.find(row.says) == std::string::npos) return "it says: " + said;
            if (!ForkedRank::is_logged(row.logs)) return "no line";
            const bool is_direct = row.setting == HIER_GPU_DIRECT_ON && row.knows;
            return DirectRank::is_staged() == is_direct ? "staged or not, wrongly" : "";
        }))));
    }
}

// One rank directly, the others through pinned memory.
void test_modes_differ(void**)
{
    for (const int route : {HIER_INTER_DIRECT, HIER_INTER_RING}) {
        expect_no_reason(keep(first_fault(run(3, [&](ForkedRank& self) -> std::string {
            const bool is_direct = self.rank() == 1;
            hier_config config =
                config_for_direct(is_direct ? HIER_GPU_DIRECT_ON : HIER_GPU_DIRECT_OFF);
            config.inter = route;
            DirectRank rank(self, config);
            if (const auto fault = call_some(rank); !fault.empty()) return fault;
            return DirectRank::is_staged() == is_direct ? "staged or not, wrongly" : "";
        }))));
    }
}

// Memory that cannot be registered is staged, by its rank alone, with one line for all its calls.
void test_memory_that_cannot_be_registered(void**)
{
    for (const UcxCall call : {UcxCall::mem_map, UcxCall::rkey_pack}) {
        expect_no_reason(keep(first_fault(run(2, [&](ForkedRank& self) -> std::string {
            DirectRank rank(self);
            if (self.rank() == 0) ucx.fail_nth(call, 1, UcxFailure::at_once);
            if (const auto fault = call_some(rank); !fault.empty()) return fault;
            if (DirectRank::is_staged() != (self.rank() == 0)) return "staged or not, wrongly";
            const std::string lines = ForkedRank::log_lines();
            const auto first = lines.find("bytes of device memory: Input/output error");
            if (self.rank() == 1) return first == std::string::npos ? "" : lines;
            if (first == std::string::npos) return "no line: " + lines;
            return lines.find("of device memory", first + 10) == std::string::npos ? "" : lines;
        }))));
    }
}

// ---- keys

// Freed and allocated again at the same address, which UCX has noticed: it registers the memory
// anew, and the peer gets another key, once. Over TCP, too, whose keys are all the same.
void test_no_stale_rkey_after_the_same_address(void**)
{
    for (const char* transports : {"rc,dc", "tcp"}) {
        expect_no_reason(keep(first_fault(run(2, [&](ForkedRank& self) -> std::string {
            hier_config config = config_for_direct();
            config.net_transports = transports;
            ucx.hides_landings = *transports == 'r';
            DirectRank rank(self, config);
            std::size_t keys = 0;
            for (int i = 0; i < 6; i++) {
                if (i == 3) rank.allocate_anew(true);
                if (const auto fault = rank.call(); !fault.empty()) return fault;
                const std::size_t now = ucx.calls(UcxCall::rkey_unpack);
                if (i > 0 && now != keys + (i == 3 ? 1 : 0))
                    return std::to_string(now - keys) + " new keys in call " + std::to_string(i);
                keys = now;
            }
            return DirectRank::is_staged() ? "staged" : "";
        }))));
    }
}

// The same, but UCX has not noticed, and gives the old registration's key: it is not used.
void test_stale_rkey_is_not_announced(void**)
{
    expect_no_reason(keep(first_fault(run(2, [](ForkedRank& self) -> std::string {
        DirectRank rank(self);
        if (const auto fault = rank.call(); !fault.empty()) return fault;
        if (self.rank() == 0) rank.allocate_anew(false);
        for (int i = 0; i < 3; i++) {
            if (const auto fault = rank.call(); !fault.empty()) return fault;
        }
        const bool is_told = ForkedRank::is_logged("the key of memory that was freed");
        if (self.rank() == 1) return is_told ? "told on the other rank" : "";
        return is_told && DirectRank::is_staged() ? "" : "not noticed";
    }))));
}

// ---- failures and cost

// What a run may end with: an error on both ranks, or, where the memory could be staged, well.
std::string make_calls(ForkedRank& self, UcxCall call, UcxFailure how, int nth)
{
    if (self.rank() == 0) ucx.fail_nth(call, nth, how);
    DirectRank rank(self);
    int code = rank.team.created();
    std::string wrong;
    for (int i = 0; i < 3 && code == HIER_OK && wrong.empty(); i++)
        code = rank.team.call(shard, rank.send, rank.receive, wrong);
    const bool is_setup = code == HIER_ERR_SETUP;
    rank.team.end();
    if (!wrong.empty()) return wrong;
    // Half a connection stays (test_ucx_failures).
    if (is_setup && ucx.calls(UcxCall::ep_create) > 0)
        ucx.contexts = ucx.workers = ucx.requests = 0;
    if (const auto leaks = ucx.leaks(); !leaks.empty()) return leaks;
    if (self.rank() == 0 && !ucx.has_failed()) return "no such call";
    const bool may_be = code == HIER_OK || is_setup || code == HIER_ERR_TRANSPORT ||
                        (self.rank() == 1 && code == HIER_ERR_PEER);
    return may_be ? "" : std::string("ended with: ") + hier_strerror(code);
}

const char* each_fails(UcxCall call, UcxFailure how, int first = 1)
{
    for (int nth = first; nth < 200; nth++) {
        const Ends ends =
            run(2, [&](ForkedRank& self) { return make_calls(self, call, how, nth); });
        if (ends[0] == "no such call")
            return nth > first ? nullptr : keep(std::string("never: ") + to_string(call));
        if (const auto fault = first_fault(ends); !fault.empty())
            return keep(fault + "; number " + std::to_string(nth) + " of " + to_string(call));
    }
    return "it never ends";
}

void test_setup_and_memory_calls_fail(void**)
{
    for (const UcxCall call : {UcxCall::context_query, UcxCall::ep_create, UcxCall::mem_map,
                               UcxCall::rkey_pack, UcxCall::rkey_unpack})
        expect_no_reason(each_fails(call, UcxFailure::at_once));
}

// (Those before are set-up, whose bounds are long: test_ucx_failures.)
void test_transfers_fail(void**)
{
    expect_no_reason(each_fails(UcxCall::get, UcxFailure::at_once));
    expect_no_reason(each_fails(UcxCall::get, UcxFailure::later));
    expect_no_reason(each_fails(UcxCall::fence, UcxFailure::at_once));
    expect_no_reason(each_fails(UcxCall::put, UcxFailure::at_once, 3));
    expect_no_reason(each_fails(UcxCall::put, UcxFailure::later, 3));
}

// After the first calls with a buffer nothing is allocated.
void test_calls_do_not_grow_memory(void**)
{
    expect_no_reason(keep(first_fault(run(2, [](ForkedRank& self) -> std::string {
        constexpr int calls = 200;
        ucx.hides_landings = false;  // the shadows' own
        DirectRank rank(self);
        std::size_t before = 0;
        for (int i = 0; i < calls; i++) {
            if (i == 20) before = allocations;
            if (const auto fault = rank.call(); !fault.empty()) return fault;
        }
        const std::size_t made = allocations - before;
        if (allocations == 0) return "nothing is counted";
        return made <= calls / 10 ? "" : std::to_string(made) + " allocations";
    }))));
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_landings_are_flushed_before_they_count),
        cmocka_unit_test(test_each_of_two_devices_is_flushed),
        cmocka_unit_test(test_flush_left_out_is_caught),
        cmocka_unit_test(test_host_memory_is_not_flushed),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_modes_differ),
        cmocka_unit_test(test_memory_that_cannot_be_registered),
        cmocka_unit_test(test_no_stale_rkey_after_the_same_address),
        cmocka_unit_test(test_stale_rkey_is_not_announced),
        cmocka_unit_test(test_setup_and_memory_calls_fail),
        cmocka_unit_test(test_transfers_fail),
        cmocka_unit_test(test_calls_do_not_grow_memory),
    };
    return cmocka_run_group_tests_name("ucx_direct", tests, nullptr, nullptr);
}
