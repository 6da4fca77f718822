// SPDX-License-Identifier: BSD-3-Clause
// Device memory that HIP has not allocated, such as memory of OpenMP's offloading. HIP says that
// such memory belongs to device 0, begins at 0x100 and has no end.
#include "test/support/engine_rank.hpp"

namespace {

using namespace hier;
using namespace hier::test;

std::byte* foreign_memory(std::size_t bytes)
{
    auto* const memory = static_cast<std::byte*>(hip_sim_foreign(bytes));
    if (memory == nullptr) throw std::runtime_error("no memory");
    return memory;
}

void test_what_it_is(void**)
{
    expect_no_reason(run(2, "20", [](ForkedRank& self) -> std::string {
        std::byte* const memory = foreign_memory(some_bytes);
        gives_success(hipSetDevice(0), "hipSetDevice");
        const Allocation found = allocation_of(memory + 100);
        if (found.device != self.rank()) return "of device " + std::to_string(found.device);
        if (found.base != memory || found.length != some_bytes) return "another range";
        return found.is_exportable ? "it passes for HIP's" : "";
    }));
}

void test_allgather(void**)
{
    expect_no_reason(run(3, "20", [](ForkedRank& self) -> std::string {
        Rank rank(self);
        if (self.rank() == 1) rank.receive_into(foreign_memory(3 * some_bytes));
        for (std::uint64_t sequence = 1; sequence <= 3; sequence++) {
            const auto fault = exchange(rank, self, sequence);
            if (!fault.empty()) return "call " + std::to_string(sequence) + ": " + fault;
        }
        return ForkedRank::is_logged("peers push into 64 MiB") == (self.rank() == 1)
                   ? ""
                   : "it does not say so";
    }));
}

void test_host_memory_that_devices_reach(void**)
{
    setenv("HIP_SIM_XNACK", "1", 1);
    expect_no_reason(run(1, "20", [](ForkedRank&) -> std::string {
        int variable = 0;
        Allocation found;
        if (failed(gpu::inspect(&variable, found))) return "not known";
        if (found.kind != MemoryKind::host) return "a device's";
        return allocation_of(device_memory(some_bytes)).is_exportable ? "" : "HIP's is not HIP's";
    }));
    unsetenv("HIP_SIM_XNACK");
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_is),
        cmocka_unit_test(test_allgather),
        cmocka_unit_test(test_host_memory_that_devices_reach),
    };
    return hier::test::run_cases(argc, argv, "foreign_memory", tests);
}
