// SPDX-License-Identifier: BSD-3-Clause
#include "team/placement.hpp"

#include <algorithm>

#include "gpu/runtime.hpp"
#include "node/device/cpu_access.hpp"
#include "node/host/cma_trial.hpp"
#include "topology/discovery.hpp"
#include "topology/nearness.hpp"

namespace hier {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// One position stands for all network devices of a rank: they are equally near.
std::string describe_nics(const NetworkTraits& network, const Position& rank)
{
    std::string text = "nic " + network.devices;
    if (!is_placed(network.position) || !is_placed(rank)) return text;
    const std::string other = rank.pci >= 0 ? "the GPU" : "the cores";
    const Nearness near = nearness(rank, network.position);
    if (near != Nearness::elsewhere) return text + ": " + to_string(near) + " as " + other;
    return text + ": not near " + other;
}

}  // namespace

PeerRecord own_record(int device_of_thread, bool tries_cpu)
{
    PeerRecord self = discover_self();
    const CmaTarget target = own_cma_target();
    self.token = target.token;
    self.words = target.words;
    const gpu::Runtime* runtime = gpu::runtime();
    if (runtime == nullptr) return self;
    self.devices = static_cast<std::int16_t>(runtime->devices());
    const int used = gpu::used_device();
    const int device = used >= 0 ? used : std::max(device_of_thread, 0);
    self.gpu_turns = runtime->gives_turns(device) ? 1 : 0;
    self.has_kernels = gpu::may_use_kernels() && runtime->has_kernels(device) ? 1 : 0;
    if (tries_cpu) self.by_cpu = max_block_by_cpu(device);
    self.gpu = position_of_pci(runtime->pci_address(device));
    return self;
}

int numa_node(const PeerRecord& record)
{
    return record.gpu.numa >= 0 ? record.gpu.numa : record.numa;
}

int memory_node(const PeerRecord& self) { return numa_nodes() > 1 ? numa_node(self) : -1; }

std::string describe_place(const std::vector<PeerRecord>& records, const Topology& topology,
                           int rank, const NetworkTraits& network)
{
    const PeerRecord& self = records[index(rank)];
    const HostRanks host = host_ranks(records, topology, rank);
    const Position& position = host.positions[index(host.self)];
    std::string text;
    const auto append = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    if (self.gpu.pci >= 0) append("GPU " + pci_text(self.gpu.pci));
    if (numa_node(self) >= 0) append("NUMA node " + std::to_string(numa_node(self)));
    if (text.empty()) append("place not known");
    if (!network.devices.empty()) append(describe_nics(network, position));
    return text;
}

}  // namespace hier
