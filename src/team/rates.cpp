// SPDX-License-Identifier: BSD-3-Clause
#include "team/rates.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "hier/gpu_fan_out.hpp"
#include "node/node_paths.hpp"

namespace hier {
namespace {

constexpr double giga = 1e9;

// A core that copies into another process.
constexpr double core_link = 5 * giga;
constexpr double core_latency = 1e-6;
// A push through cells of shared memory, per peer. Measured: 2.4 to 6.7 us in all, with 4 to 16
// cores of one node.
constexpr double cell_latency = 0.4e-6;
// A published block, per peer. Measured before such calls ended in their start: 0.8 to 5.4 us in all, with 2 to 32 cores.
constexpr double publish_latency = 0.15e-6;
// A core's time for a call, whatever it does. Of 0.8 us with 2 ranks and 16 B some 0.4 us are that.
constexpr double core_overhead = 0.4e-6;
// The same two of calls that end in their start. Then the model expects 0.42, 0.54, 0.78 and 1.26 us for 2, 4, 8 and 16
// ranks and few bytes. Measured on 16 cores, 8 B: 0.43, 0.54, 0.82 and 1.33.
constexpr double exchange_latency = 0.06e-6, exchange_overhead = 0.24e-6;
// A GPU's copy engines with several links of NVLink or xGMI. Batches are as on H200
// (bench/results/calibration.csv): starts hide behind bytes as if there were two streams.
constexpr double device_link = 200 * giga;
constexpr double device_latency = 2e-6;
constexpr double device_issue = 0.5e-6;
constexpr int device_streams = 2;
constexpr double device_memory = 1000 * giga;
// The CPU waits for two copies of a few bytes, to the host and back.
constexpr double device_detour = 20e-6;
constexpr double device_stage = 25 * giga;  // PCIe 4 x16

// A published block in device memory, if ranks share GPUs: the model then expects 10 us and 5 us more
// for each rank. Measured on an H100, 16 B: 24 to 26, 33 to 38 and 53 to 56 us with 2, 4 and 8 ranks.
constexpr double device_publish_latency = 10e-6;
// The fallback module with staging, on the same GPU under MPS: this and so much more for each rank.
constexpr double shared_detour = 11e-6, shared_detour_rank = 7e-6;

// A call by kernels, with so much for each rank. Measured on H100, 16 to 256 B, calls that repeat: 9.7 and
// 10.6 us with 2 and 4 ranks on GPUs of their own; with 2, 4 and 8 ranks on one under MPS 9, 12 and 19.
constexpr double kernel_call = 9e-6, kernel_rank = 0.4e-6;
constexpr double shared_kernel_call = 6e-6, shared_kernel_rank = 1.6e-6;

// Calls by copy engines on H200 take 8 us that no rate explains: 12.3 and 14.4 us in all for small blocks on 2 and
// 4 of them (bench/results/calibration.csv). 1 is taken for the ranks to enter and leave; that part is a guess.
constexpr double device_launch = 7e-6;
// Kernels that push, one behind the other, take 6.1 us and their bytes on H100 (doc/gpu-memory.md). A single one
// takes as long as a copy.
constexpr double device_kernel_gap = 4.1e-6;

// UCX takes an interface that does not tell its rate for one of 100 Mbit/s.
constexpr double min_told = 13e6;
constexpr double assumed_nic = 10 * giga / 8;
constexpr double tcp_issue = 10e-6;
constexpr double rdma_issue = 0.5e-6;
// Measured with 16 B a rank on 2, 4 and 8 nodes of 4 and 8 ranks that share a link of 10 Gbit/s
// (test_cost_small).
constexpr double tcp_message = 4e-6;
constexpr double tcp_gap = 5.5e-6;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// The count of the node with the fewest. All devices of one rank count as one.
int network_devices_of_a_node(std::span<const RateRecord> records, const Topology& topology)
{
    std::size_t fewest = records.size();
    for (int n = 0; n < topology.nodes(); n++) {
        std::set<std::uint64_t> devices;
        for (const int rank : topology.ranks_on(n)) devices.insert(records[index(rank)].device);
        fewest = std::min(fewest, devices.size());
    }
    return static_cast<int>(fewest);
}

const char* to_string(std::int32_t source)
{
    switch (source) {
    case RateRecord::stated:
        return "stated";
    case RateRecord::tuned:
        return "tuning file";
    case RateRecord::told:
        return "UCX says";
    default:
        return "assumed";
    }
}

}  // namespace

RateRecord own_rates(const hier_config& config, bool uses_device, const NetworkTraits& network,
                     const Tuning* tuning)
{
    const double tuned_nic = tuning != nullptr && network.is_tcp ? tuning->tcp_rate : 0;
    const double tuned_link = tuning == nullptr ? 0
                              : uses_device     ? tuning->engine_rate
                                                : tuning->core_rate;
    const NetworkRate& told = network.rate;
    RateRecord self{};
    self.device = std::hash<std::string>()(network.devices);
    self.lanes = network.lanes;
    self.max_bytes = network.max_bytes;
    self.stages = network.reaches_devices ? 0 : 1;
    self.in_order = network.is_in_order ? 1 : 0;
    self.nic_is = config.net_rate > 0    ? RateRecord::stated
                  : tuned_nic > 0        ? RateRecord::tuned
                  : told.rate > min_told ? RateRecord::told
                                         : RateRecord::assumed;
    self.nic = config.net_rate > 0    ? config.net_rate * giga
               : tuned_nic > 0        ? tuned_nic * giga
               : told.rate > min_told ? told.rate
                                      : assumed_nic;
    self.nic_latency = told.latency;
    self.nic_issue = network.is_tcp ? tcp_issue : rdma_issue;
    self.message = network.is_tcp ? tcp_message : rdma_issue;
    self.nic_gap = network.is_tcp ? tcp_gap : 0;
    self.link_is = config.link_rate > 0 ? RateRecord::stated
                   : tuned_link > 0     ? RateRecord::tuned
                                        : RateRecord::assumed;
    self.link = (config.link_rate > 0 ? config.link_rate : tuned_link) * giga;
    self.uses_device = uses_device ? 1 : 0;
    self.has_threads = config.has_threads != 0 ? 1 : 0;
    self.small_block = PathChoice::max_through_cells;
    return self;
}

namespace {

RateRecord slowest_of(std::span<const RateRecord> records)
{
    RateRecord slowest = records[0];
    for (const RateRecord& r : records) {
        slowest.lanes = std::min(slowest.lanes, r.lanes);
        slowest.max_bytes = std::min(slowest.max_bytes, r.max_bytes);
        slowest.stages = std::max(slowest.stages, r.stages);
        slowest.publish = std::min(slowest.publish, r.publish);
        slowest.host_publish = std::min(slowest.host_publish, r.host_publish);
        slowest.small_block = std::min(slowest.small_block, r.small_block);
        slowest.shared_result = std::min(slowest.shared_result, r.shared_result);
        slowest.fan_out = std::min(slowest.fan_out, r.fan_out);
        if (r.nic < slowest.nic) {
            slowest.nic = r.nic;
            slowest.nic_is = r.nic_is;
        }
        slowest.nic_latency = std::max(slowest.nic_latency, r.nic_latency);
        slowest.nic_issue = std::max(slowest.nic_issue, r.nic_issue);
        slowest.message = std::max(slowest.message, r.message);
        slowest.nic_gap = std::max(slowest.nic_gap, r.nic_gap);
        // 0 means that the rank states no rate. A rank that states one knows more.
        if (slowest.link == 0 || (r.link > 0 && r.link < slowest.link)) {
            slowest.link = r.link;
            slowest.link_is = r.link_is;
        }
    }
    return slowest;
}

Rates rates_of(const RateRecord& slowest, bool has_devices)
{
    Rates rates;
    rates.nic = slowest.nic;
    rates.nic_latency = slowest.nic_latency;
    rates.nic_issue = slowest.nic_issue;
    rates.message = slowest.message;
    rates.nic_gap = slowest.nic_gap;
    rates.lanes = static_cast<int>(slowest.lanes);
    rates.link = slowest.link > 0 ? slowest.link : has_devices ? device_link : core_link;
    rates.link_alone = has_devices || slowest.link > 0 ? 0 : 2 * rates.link;
    rates.link_latency = has_devices ? device_latency : core_latency;
    rates.small_latency = has_devices ? device_latency : cell_latency;
    rates.small_bytes = PathChoice::max_through_cells;
    rates.publish_latency = publish_latency;
    rates.publish_space = slowest.publish;
    rates.publish_block = NodePublish::space_for(1, 0);
    rates.shared_result = has_devices ? 0 : slowest.shared_result;
    rates.overhead = has_devices ? 0 : core_overhead;
    rates.exchange_overhead = has_devices ? 0 : exchange_overhead;
    rates.exchange_latency = has_devices ? 0 : exchange_latency;
    rates.detour = has_devices ? device_detour : 0;
    rates.detour_rate = has_devices ? device_stage : 0;
    rates.copy_issue = has_devices ? device_issue : 0;
    rates.streams = has_devices ? device_streams : 1;
    rates.own = has_devices ? device_memory : rates.link;
    rates.engines = has_devices;
    rates.fan_out = has_devices && slowest.fan_out != RateRecord::alone ? slowest.fan_out : 0;
    rates.kernel_blocks = static_cast<int>(gpu::FanOut::max_blocks);
    rates.kernel_gap = device_kernel_gap;
    rates.launch = has_devices ? device_launch : 0;
    rates.stage = has_devices && slowest.stages != 0 ? device_stage : 0;
    return rates;
}

// The largest block that ranks on shared GPUs publish. Copy engines take the same time for any
// block up to 1 MiB: that of a turn, or, without turns, what the ranks' copies cost each other. Then
// they take 21 us with 2 ranks, 46 to 50 with 4, and 127 to 153 with 8. Published blocks take, in us,
// on an H100 under MPS:
//
//                16 B   4 KiB   16 KiB   32 KiB   64 KiB
//     2 ranks      24
//     4 ranks      38      43       50
//     8 ranks      56      62       79      104      148
std::size_t largest_on_shared_gpus(int ranks, bool get_turns)
{
    if (get_turns) return std::numeric_limits<std::size_t>::max();
    return ranks > 4 ? 32 << 10 : ranks > 2 ? 8 << 10 : 0;
}

// The largest block that goes by kernels that wait for each other. Larger ones are quicker by kernels that push
// (node/device/fan_out.hpp). (2 H200, in all 128 and 256 KiB: 9.8 and 11.9 us; by pushes 9.2 and 9.3.)
std::size_t largest_by_kernels(int ranks, bool share_gpus)
{
    const std::size_t in_all = ranks > 2 ? 256 << 10 : 64 << 10;
    const std::size_t largest = share_gpus ? 32 << 10 : in_all / index(ranks);
    return std::min(largest, KernelExchange::max_block(ranks));
}

// The model counts publish_latency once, and half of it for each rank.
void suit_kernels(Rates& rates, int ranks, bool share_gpus)
{
    const double call = share_gpus ? shared_kernel_call + ranks * shared_kernel_rank
                                   : kernel_call + ranks * kernel_rank;
    rates.small_bytes = largest_by_kernels(ranks, share_gpus);
    rates.publish_latency = call / (1 + ranks / 2.0);
    if (share_gpus) rates.detour = shared_detour + ranks * shared_detour_rank;
}

void suit_shared_gpus(Rates& rates, int ranks, bool get_turns)
{
    rates.small_bytes = largest_on_shared_gpus(ranks, get_turns);
    rates.publish_latency = device_publish_latency;
    rates.detour = shared_detour + ranks * shared_detour_rank;
}

}  // namespace

const char* fault_of(const RateRecord& record)
{
    constexpr std::int64_t max_lanes = 1024;
    if (record.lanes < 1 || record.lanes > max_lanes) return "a number of network devices";
    for (const std::int32_t source : {record.nic_is, record.link_is}) {
        if (source < RateRecord::stated || source > RateRecord::assumed)
            return "a source of its rate";
    }
    for (const std::int32_t flag : {record.uses_device, record.stages, record.in_order,
                                    record.is_foreign, record.has_threads}) {
        if (flag != 0 && flag != 1) return "neither yes nor no";
    }
    for (const double figure : {record.nic, record.nic_latency, record.nic_issue, record.message,
                                record.nic_gap, record.link}) {
        if (!std::isfinite(figure) || figure < 0) return "a rate or a time";
    }
    return record.nic > 0 ? nullptr : "a rate of 0";
}

TeamRates team_rates(std::span<const RateRecord> records, const Topology& topology,
                     const NodeGpus& gpus)
{
    // The memory of buffers may differ from rank to rank and from call to call. The choice must
    // not. So a team whose ranks all use GPUs gets what suits GPU memory.
    const bool has_devices =
        std::all_of(records.begin(), records.end(), [](auto& r) { return r.uses_device != 0; });
    const RateRecord slowest = slowest_of(records);
    TeamRates team;
    team.may_be_eager =
        std::all_of(records.begin(), records.end(), [](auto& r) { return r.in_order != 0; });
    team.has_threads =
        std::all_of(records.begin(), records.end(), [](auto& r) { return r.has_threads != 0; });
    team.max_bytes = slowest.max_bytes;
    for (const RateRecord& r : records) {
        team.uses_devices = team.uses_devices || r.uses_device != 0;
        team.bounces_devices = team.bounces_devices || (r.uses_device != 0 && r.stages != 0);
    }
    team.rates = rates_of(slowest, has_devices);
    Rates& rates = team.rates;
    // On several nodes a published block saves messages, too.
    if (topology.nodes() == 1) rates.small_bytes = slowest.small_block;
    // Only a node whose ranks have kernels, share GPUs or reach device memory by the CPU publishes it.
    if (has_devices && slowest.publish > 0 && topology.size() > 1) {
        if (gpus.have_kernels)
            suit_kernels(rates, topology.size(), gpus.share_gpus);
        else if (gpus.share_gpus)
            suit_shared_gpus(rates, topology.size(), gpus.gpu_turns);
        else
            rates.small_bytes = 0;
        rates.small_bytes = std::max(rates.small_bytes, gpus.max_by_cpu);
    }
    if (team.uses_devices) {
        rates.host_publish_bytes =
            topology.nodes() == 1 ? slowest.small_block : PathChoice::max_through_cells;
        rates.host_publish_space = slowest.host_publish;
    }
    rates.nics = network_devices_of_a_node(records, topology);
    if (topology.nodes() > 1) {
        const int devices = rates.nics * rates.lanes;
        team.text = format("%d network device%s a node", devices, devices > 1 ? "s" : "");
        if (rates.lanes > 1) team.text += format(", %d a rank,", rates.lanes);
        team.text += format(" at %.4g GB/s (%s), %.3g us; ", rates.nic / giga,
                            to_string(slowest.nic_is), rates.nic_latency * 1e6);
    }
    team.text += format("%s at %.4g GB/s (%s)", has_devices ? "copy engines" : "cores",
                        rates.link / giga, to_string(slowest.link_is));
    if (rates.fan_out == RateRecord::any_size)
        team.text += ", all chunks by kernels";
    else if (rates.fan_out > 0)
        team.text += format(", chunks of up to %zu KiB by kernels", rates.fan_out >> 10);
    return team;
}

}  // namespace hier
