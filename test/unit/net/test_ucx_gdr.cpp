// SPDX-License-Identifier: BSD-3-Clause
// gdr: the network writes into device memory itself. The bytes are flushed before they count,
// memory that the network cannot reach is staged, and no key outlives its memory.
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "net/ucx/ucx_config.hpp"
#include "test/support/gdr_rank.hpp"
#include "test/support/wrapped/clock.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// ---- flush

void test_landings_are_flushed_before_they_count(void**)
{
    for (const int route : {HIER_INTER_DIRECT, HIER_INTER_RING}) {
        expect_no_reason(keep(first_fault(run_gdr(3, [&](ForkedRank& self) -> std::string {
            hier_config config = config_for_gdr();
            config.inter = route;
            GdrRank rank(self, config);
            if (const auto fault = call_some(rank); !fault.empty()) return fault;
            if (GdrRank::is_staged()) return "through pinned memory";
            return ucx.calls(UcxCall::get) > 0 ? "" : "no flush was made";
        }))));
    }
}

// Two network devices a rank. They are connections over loopback.
void test_each_of_two_devices_is_flushed(void**)
{
    expect_no_reason(keep(first_fault(run_gdr(3, [&](ForkedRank& self) -> std::string {
        hier_config config = config_for_gdr();
        config.net_transports = "tcp";
        config.net_devices = "lo,lo,lo,lo,lo,lo";
        GdrRank rank(self, config);
        if (const auto fault = call_some(rank); !fault.empty()) return fault;
        if (GdrRank::is_staged()) return "through pinned memory";
        return ucx.calls(UcxCall::get) > 0 && ucx.puts_of_second > 0 ? "" : "no flush was made";
    }))));
}

// The test above can fail: without the flush, bytes are missing behind their signal.
void test_flush_left_out_is_caught(void**)
{
    const Ends ends = run_gdr(2, [](ForkedRank& self) {
        ucx.reads_flush = false;
        GdrRank rank(self);
        return call_some(rank);
    });
    const bool is_caught = ends[0].find("a wrong byte") != std::string::npos ||
                           ends[1].find("a wrong byte") != std::string::npos;
    assert_true(is_caught);
}

// Without data that lands in device memory there is no flush.
void test_host_memory_is_not_flushed(void**)
{
    expect_no_reason(keep(first_fault(run_gdr(2, [](ForkedRank& self) -> std::string {
        GdrRank rank(self);
        std::vector<std::byte> receive(2 * shard);
        std::string wrong;
        if (rank.team.call(shard, rank.send, receive.data(), wrong) != HIER_OK) return "failed";
        if (!wrong.empty() || GdrRank::is_staged()) return wrong + " or staged";
        return ucx.calls(UcxCall::get) == 0 ? "" : "flushed";
    }))));
}

// ---- which memory the network reaches itself

void test_settings(void**)
{
    struct Row {
        int setting;
        bool knows;
        const char* says;
        const char* logs;
    };
    // The UCX of Debian 12 is too old for auto.
    for (const Row& row :
         {Row{HIER_GPU_DIRECT_ON, true, "device memory directly", ""},
          Row{HIER_GPU_DIRECT_ON, false, "pinned memory (UCX does not know ROCm memory here)",
              "coll_hier_gpu_direct is on, but UCX does not know ROCm memory here"},
          Row{HIER_GPU_DIRECT_OFF, true, "pinned memory (coll_hier_gpu_direct is off)", ""},
          Row{HIER_GPU_DIRECT_AUTO, false, "pinned memory (UCX does not know ROCm", ""}}) {
        expect_no_reason(keep(first_fault(run_gdr(2, [&](ForkedRank& self) -> std::string {
            ucx.knows_rocm = row.knows;
            GdrRank rank(self, config_for_gdr(row.setting));
            if (const auto fault = call_some(rank); !fault.empty()) return fault;
            const std::string said = rank.team.description();
            if (said.find(row.says) == std::string::npos) return "it says: " + said;
            if (!ForkedRank::is_logged(row.logs)) return "no line";
            const bool is_gdr = row.setting == HIER_GPU_DIRECT_ON && row.knows;
            return GdrRank::is_staged() == is_gdr ? "staged or not, wrongly" : "";
        }))));
    }
}

// One rank by gdr, the others through pinned memory.
void test_modes_differ(void**)
{
    for (const int route : {HIER_INTER_DIRECT, HIER_INTER_RING}) {
        expect_no_reason(keep(first_fault(run_gdr(3, [&](ForkedRank& self) -> std::string {
            const bool is_gdr = self.rank() == 1;
            hier_config config = config_for_gdr(is_gdr ? HIER_GPU_DIRECT_ON : HIER_GPU_DIRECT_OFF);
            config.inter = route;
            GdrRank rank(self, config);
            if (const auto fault = call_some(rank); !fault.empty()) return fault;
            return GdrRank::is_staged() == is_gdr ? "staged or not, wrongly" : "";
        }))));
    }
}

// Memory that cannot be registered is staged, only by the rank that has it. This rank logs one line
// for all its calls.
void test_memory_that_cannot_be_registered(void**)
{
    for (const UcxCall call : {UcxCall::mem_map, UcxCall::rkey_pack}) {
        expect_no_reason(keep(first_fault(run_gdr(2, [&](ForkedRank& self) -> std::string {
            GdrRank rank(self);
            if (self.rank() == 0) ucx.fail_nth(call, 1, UcxFailure::at_once);
            if (const auto fault = call_some(rank); !fault.empty()) return fault;
            if (GdrRank::is_staged() != (self.rank() == 0)) return "staged or not, wrongly";
            const std::string lines = ForkedRank::log_lines();
            const auto first = lines.find("bytes of device memory: Input/output error");
            if (self.rank() == 1) return first == std::string::npos ? "" : lines;
            if (first == std::string::npos) return "no line: " + lines;
            return lines.find("of device memory", first + 10) == std::string::npos ? "" : lines;
        }))));
    }
}

// A device whose memory no NIC registers, for example because a kernel module is missing. The user
// does not see UCX's errors, and the core tries only some buffers. But if one buffer was registered
// before, the core keeps trying.
std::string refuse_all(ForkedRank& self, bool after_one)
{
    ucx.refuses_devices = !after_one;
    GdrRank rank(self);
    std::string fault = after_one ? rank.call(shard, true) : "";
    ucx.refuses_devices = true;
    const int words = memfd_create("words", 0);
    const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    dup2(words, STDOUT_FILENO);
    dup2(words, STDERR_FILENO);
    std::size_t asked = 0;
    for (int i = 0; i < 12 && fault.empty(); i++) {
        rank.allocate_anew(true);
        asked = ucx.calls(UcxCall::mem_map);
        fault = rank.call(shard, true);
        asked = ucx.calls(UcxCall::mem_map) - asked;
    }
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    if (!fault.empty()) return fault;
    if (lseek(words, 0, SEEK_END) != 0) return "UCX's words reach the user";
    // One registration is that of the bounce buffer.
    return asked == (after_one ? 2 : 1) ? "" : std::to_string(asked) + " registrations in a call";
}

void test_memory_that_is_never_registered(void**)
{
    for (const bool after_one : {false, true}) {
        expect_no_reason(keep(first_fault(
            run_gdr(2, [&](ForkedRank& self) { return refuse_all(self, after_one); }))));
    }
}

// Settings that gdr needs, whatever the environment says.
void test_configuration(void**)
{
    for (const char* memory : {"", "cuda_copy", "rocm_copy"}) {
        expect_no_reason(keep(first_fault(run_ranks(1, [&](ForkedRank&) -> std::string {
            ucp_config_t* config = nullptr;
            if (ucp_config_read(nullptr, nullptr, &config) != UCS_OK) return "no configuration";
            configure(config, {.devices = "lo", .transports = "rc", .memory = memory});
            ucp_config_release(config);
            const bool is_new = ucx_version() >= first_for_devices;
            if ((ucx.settings["PROTO_ENABLE"] == "y") != (is_new && *memory != '\0'))
                return "the old protocols";
            const char* key = ucx_version() >= 118 ? "ROCM_COPY_DMABUF" : "DMABUF";
            return (ucx.settings[key] == "try") == (is_new && *memory == 'r') ? "" : "dmabuf";
        }))));
    }
}

// ---- keys

// Memory is freed and allocated again at the same address, and UCX has noticed that. UCX registers
// the memory anew, and the peer gets another key, once. That holds over TCP, too, whose keys are
// all equal.
void test_no_stale_rkey_after_the_same_address(void**)
{
    for (const char* transports : {"rc,dc", "tcp"}) {
        expect_no_reason(keep(first_fault(run_gdr(2, [&](ForkedRank& self) -> std::string {
            hier_config config = config_for_gdr();
            config.net_transports = transports;
            ucx.hides_landings = *transports == 'r';
            GdrRank rank(self, config);
            std::size_t keys = 0;
            for (int i = 0; i < 6; i++) {
                if (i == 3) rank.allocate_anew(true);
                if (const auto fault = rank.call(); !fault.empty()) return fault;
                const std::size_t now = ucx.calls(UcxCall::rkey_unpack);
                if (i > 0 && now != keys + (i == 3 ? 1 : 0))
                    return std::to_string(now - keys) + " new keys in call " + std::to_string(i);
                keys = now;
            }
            return GdrRank::is_staged() ? "staged" : "";
        }))));
    }
}

// The same, but UCX has not noticed and gives the key of the old registration. The core does not
// use this key.
void test_stale_rkey_is_not_announced(void**)
{
    expect_no_reason(keep(first_fault(run_gdr(2, [](ForkedRank& self) -> std::string {
        GdrRank rank(self);
        if (const auto fault = rank.call(); !fault.empty()) return fault;
        if (self.rank() == 0) rank.allocate_anew(false);
        for (int i = 0; i < 3; i++) {
            if (const auto fault = rank.call(); !fault.empty()) return fault;
        }
        const bool is_told = ForkedRank::is_logged("the key of memory that was freed");
        if (self.rank() == 1) return is_told ? "told on the other rank" : "";
        return is_told && GdrRank::is_staged() ? "" : "not noticed";
    }))));
}

// The same with a part of the buffer, which lies in VMM segments.
void test_stale_rkey_of_a_segment(void**)
{
    expect_no_reason(keep(first_fault(run_gdr(2, [](ForkedRank& self) -> std::string {
        GdrRank rank(self);
        if (self.rank() == 0) rank.receive_into_segments();
        for (int i = 0; i < 6; i++) {
            if (const auto fault = rank.call(); !fault.empty()) return fault;
            if (i < 3 && GdrRank::is_staged()) return "staged";
            if (i == 2 && self.rank() == 0) rank.map_anew(1);
        }
        const bool is_told = ForkedRank::is_logged("the key of memory that was freed");
        return is_told == (self.rank() == 0) ? "" : "not noticed";
    }))));
    // This runtime version shows only the first of them.
    const auto body = [](ForkedRank& self) -> std::string {
        GdrRank rank(self);
        if (self.rank() == 0) rank.receive_into_segments();
        if (const auto fault = rank.call(); !fault.empty()) return fault;
        const bool is_told = ForkedRank::is_logged("it lies in more than one allocation");
        return is_told == (self.rank() == 0) ? "" : "not noticed";
    };
    expect_no_reason(keep(first_fault(run_gdr(2, body, not_sharing_version))));
}

// A NIC may not get managed memory, wherever its pages are. UCX would put data by messages and
// words by RDMA, and these have no order.
void test_managed_memory_is_staged(void**)
{
    expect_no_reason(keep(first_fault(run_gdr(2, [](ForkedRank& self) -> std::string {
        GdrRank rank(self);
        void* managed = nullptr;
        gives_success(hipMallocManaged(&managed, 2 * shard, hipMemAttachGlobal), "managed memory");
        if (const auto fault = rank.call(); !fault.empty()) return fault;
        if (GdrRank::is_staged()) return "staged before";
        std::string wrong;
        std::vector<std::byte> send(shard);
        auto* const receive = static_cast<std::byte*>(managed);
        if (rank.team.call(shard, send, receive, wrong) != HIER_OK || !wrong.empty())
            return "the call fails " + wrong;
        const bool is_staged = GdrRank::is_staged();
        rank.team.end();
        (void)hipFree(managed);
        return is_staged ? "" : "not staged";
    }))));
}

}  // namespace

int main(int argc, char** argv)
{
    hier::test::use_clock(hier::test::ClockMode::fast);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_landings_are_flushed_before_they_count),
        cmocka_unit_test(test_each_of_two_devices_is_flushed),
        cmocka_unit_test(test_flush_left_out_is_caught),
        cmocka_unit_test(test_host_memory_is_not_flushed),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_modes_differ),
        cmocka_unit_test(test_memory_that_cannot_be_registered),
        cmocka_unit_test(test_memory_that_is_never_registered),
        cmocka_unit_test(test_configuration),
        cmocka_unit_test(test_no_stale_rkey_after_the_same_address),
        cmocka_unit_test(test_stale_rkey_is_not_announced),
        cmocka_unit_test(test_stale_rkey_of_a_segment),
        cmocka_unit_test(test_managed_memory_is_staged),
    };
    return hier::test::run_cases(argc, argv, "ucx_gdr", tests);
}
