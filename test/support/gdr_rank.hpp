// SPDX-License-Identifier: BSD-3-Clause
// Ranks with buffers in device memory, on a network that says it reaches this memory. UCX goes over
// TCP, is told that TCP is RDMA, and says that it knows ROCm memory. The memory is the simulated
// runtime's, which the CPU can read here.
#pragma once

#include <string>

#include "gpu_rank.hpp"
#include "reachable.hpp"
#include "team_rank.hpp"
#include "wrapped/ucx.hpp"
#include "wrapped/ucx_device.hpp"

namespace hier::test {

constexpr std::size_t shard = 100000;  // bytes

inline hier_config config_for_gdr(int setting = HIER_GPU_DIRECT_ON)
{
    hier_config config = config_for_tests();
    config.net_transports = "rc,dc";
    config.chunk_bytes = 16 << 10;
    config.gpu_direct = setting;
    return config;
}

inline Ends run_gdr(int ranks, const std::function<std::string(ForkedRank&)>& body,
                    const char* version = sharing_version)
{
    return run_ranks(ranks, [&](ForkedRank& self) {
        use_built_module();
        setenv("HIP_SIM_HIDDEN", "0", 1);
        setenv("HIP_SIM_VERSION", version, 1);
        setenv("HIP_SIM_DELAY_US", "20", 1);
        gives_success(hipSetDevice(self.rank()), "hipSetDevice");
        ucx.transports = "tcp";
        ucx.knows_rocm = true;
        ucx.hides_landings = true;
        return body(self);
    });
}

// A team and its buffers on the device.
struct GdrRank {
    explicit GdrRank(ForkedRank& self, const hier_config& config = config_for_gdr())
        : ranks(static_cast<std::size_t>(self.size())), send(device_memory(shard)),
          receive(device_memory(ranks * shard)), is_seen(!is_reachable(receive)), team(self, config)
    {
    }
    ~GdrRank()
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
    // The new memory has the same address.
    void allocate_anew(bool is_seen_by_ucx)
    {
        std::byte* const before = receive;
        gives_success(hipFree(receive), "freeing");
        if (is_seen_by_ucx) forget_shadow(before);
        receive = device_memory(ranks * shard);
        if (receive != before) throw std::runtime_error("the memory is elsewhere");
    }
    // map_anew() then puts other memory at some of its addresses, and UCX does not see it.
    void receive_into_segments()
    {
        (void)hipFree(receive);
        receive = mapped_memory(ranks * shard / segment_bytes + 1, 0);
    }
    void map_anew(std::size_t segment)
    {
        std::byte* const at = receive + segment * segment_bytes;
        unmap_segment(at);
        map_segment(at, 0);
    }
    static bool is_staged() { return hip_sim_live("pinned") > 0; }

    std::size_t ranks;
    std::byte* send;
    std::byte* receive;
    bool is_seen;  // the component looks at a call's buffers before it makes a team
    TeamRank team;
};

inline std::string call_some(GdrRank& rank)
{
    if (rank.team.created() != HIER_OK) return "no team: " + ForkedRank::log_lines();
    for (int i = 0; i < 12; i++) {
        const std::size_t bytes[] = {shard, 1, 4097};
        const auto fault = rank.call(bytes[i % 3], i % 4 == 3);
        if (!fault.empty()) return fault;
    }
    return "";
}

}  // namespace hier::test
