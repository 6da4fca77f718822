// SPDX-License-Identifier: BSD-3-Clause
// The rates that a team's cost model uses: stated by the user, told by UCX, or assumed. Equal on
// all ranks, because the figures of the slowest rank are taken.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "coll/common/rates.hpp"
#include "hier/hier.h"
#include "hier/topology.hpp"
#include "net/network_transport.hpp"
#include "tuning/tuning.hpp"

namespace hier {

// One rank's figures, sent to the others as bytes: no padding.
struct RateRecord {
    std::uint64_t device;     // equal for the ranks of a host that share their network devices
    std::int64_t lanes;       // how many network devices the rank has
    std::uint64_t max_bytes;  // the largest call for which its network surely has memory
    double nic, nic_latency, nic_issue, message, nic_gap;
    double link;           // as stated; 0: not stated
    std::uint64_t tuning;  // Tuning::digest; 0: none, or the file is of another machine
    std::int32_t nic_is;   // Source
    std::int32_t link_is;
    std::int32_t uses_device;  // 1: the rank uses a GPU
    std::int32_t stages;       // 1: its network does not reach device memory
    std::int32_t in_order;     // 1: its network delivers in order
    std::int32_t is_foreign;   // 1: the tuning file is of another machine
    std::int32_t has_threads;  // 1: threads may call at the same time
    std::int32_t unused;
    std::uint64_t publish;        // Rates::publish_space
    std::uint64_t host_publish;   // Rates::host_publish_space
    std::uint64_t small_block;    // NodeTransport::max_published(false)
    std::uint64_t shared_result;  // Rates::shared_result
    // Rates::fan_out. alone: the rank has no peers on its node. any_size: all blocks go by kernels.
    std::uint64_t fan_out;
    static constexpr std::uint64_t alone = ~0ULL, any_size = alone - 1;
    enum Source : std::int32_t { stated, tuned, told, assumed };
};
static_assert(std::is_trivially_copyable_v<RateRecord>);
// nullptr, or what is wrong with a record. No rank of this program sends such a one.
const char* fault_of(const RateRecord& record);

// `tuning`: of this machine, or nullptr.
RateRecord own_rates(const hier_config& config, bool uses_device, const NetworkTraits& network,
                     const Tuning* tuning = nullptr);

struct TeamRates {
    Rates rates;
    bool may_be_eager = true;      // all networks deliver in order
    std::size_t max_bytes = 0;     // the largest call that all networks take
    bool has_threads = false;      // on all ranks threads may call at the same time
    bool uses_devices = false;     // any rank uses a GPU
    bool bounces_devices = false;  // the network of such a rank does not reach its GPU's memory
    std::string text;              // the rates and their sources
};
// How the ranks of a node use their GPUs; the names are those of NodeRanks.
struct NodeGpus {
    bool share_gpus = false, gpu_turns = false, have_kernels = false;
    std::size_t max_by_cpu = 0;
};
TeamRates team_rates(std::span<const RateRecord> records, const Topology& topology,
                     const NodeGpus& gpus = {});

}  // namespace hier
