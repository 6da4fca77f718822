// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of a team share a node, and which meet on a rail.
//
//            node 0          node 1
//          +--------+      +--------+
//          | 0    1 |      | 2    3 |     node groups {0,1} {2,3}
//          +-|----|-+      +-|----|-+
//            |    +----------|----+       rail 1 {1,3}
//            +---------------+            rail 0 {0,2}
//
// A rail is the leader group of one local index: every local rank leads one. With uneven nodes
// there are as many rails as the smallest node has ranks. A larger node then has several ranks on a
// rail, which share its load:
//
//          node 0 {0,1,2}, node 1 {3}:  one rail {0,1,2,3}
//          node 0 {0,1,2,3}, node 1 {4,5}:  rails {0,2,4} and {1,3,5}
//
// Pure values: equal records give the same topology on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace hier {

// The place of a device, or of a set of cores, in its host. Two positions tell how near they are to
// one another (topology/nearness.hpp). -1: not known, or several.
struct Position {
    std::int64_t pci = -1;          // its own address: domain, bus, device, function
    std::int32_t package = -1;      // hwloc's logical number
    std::int32_t numa = -1;         // the system's number
    std::int32_t host_bridge = -1;  // hwloc's number; only devices have this and the next
    std::int32_t root_port = -1;    // devices of one port share a switch or a card
    bool operator==(const Position&) const = default;
};

// The data that a rank sends to all others about itself. Compared and sent as bytes: no padding, no
// pointers.
struct PeerRecord {
    std::uint64_t node_key;  // equal exactly for the ranks that share memory and process ids
    Position gpu;            // the GPU that the rank uses
    std::int32_t package;    // with all cores of the rank; -1: none, or not bound
    std::int32_t numa;
    std::int32_t first_pu;
    std::int32_t pid;         // in the node's process-id namespace
    std::int32_t cpus;        // cores of its host that the job may run on
    std::int16_t devices;     // that its GPU runtime has; 0: it uses none
    std::int8_t gpu_turns;    // 1: processes that share its GPU get it in turns
    std::int8_t has_kernels;  // 1: it may launch kernels
    std::uint64_t token;      // of the process, by chance
    std::uint64_t words;      // where the process lets others of its node try CMA
    std::uint64_t by_cpu;     // the largest block of device memory that its CPU moves; 0: none
};
static_assert(std::has_unique_object_representations_v<PeerRecord>);
// nullptr, or what is wrong with a record. No rank of this program sends such a one.
const char* fault_of(const PeerRecord& record);

class Topology {
public:
    Topology() = default;

    // node_of_rank[r] is any number that is equal for the ranks of one node. local_order[r], where
    // given, orders the ranks of a node. Ranks with equal values keep rank order.
    explicit Topology(std::span<const int> node_of_rank, std::span<const int> local_order = {});

    int size() const { return static_cast<int>(node_of_.size()); }
    int nodes() const { return static_cast<int>(members_.size()); }
    int rails() const { return static_cast<int>(rail_members_.size()); }

    // Nodes are numbered by their lowest rank.
    int node_of(int rank) const { return node_of_[index(rank)]; }
    int local_of(int rank) const { return local_of_[index(rank)]; }
    int rail_of(int rank) const { return local_of(rank) % rails(); }
    // The position of a rank in ranks_on_rail(rail_of(rank)).
    int rail_index_of(int rank) const { return rail_index_[index(rank)]; }

    std::span<const int> ranks_on(int node) const
    {
        return members_[index(node)];
    }  // by local index
    std::span<const int> ranks_on_rail(int rail) const
    {
        return rail_members_[index(rail)];
    }  // by node, then local index

    // The one rank at which the shard of `source` enters `node`, always on the rail of `source`. On
    // its own node that is `source` itself.
    int entry(int source, int node) const;
    // The rank of node `from` that puts the node's bundle to another node `to`. The ranks of a node
    // that have a rail of their own take the other nodes round robin.
    int leader(int from, int to) const;

private:
    static std::size_t index(int i) { return static_cast<std::size_t>(i); }

    std::vector<int> node_of_;
    std::vector<int> local_of_;
    std::vector<int> rail_index_;
    std::vector<std::vector<int>> members_;
    std::vector<std::vector<int>> rail_members_;
};

// Groups ranks by node_key, orders the ranks of a host by locality, and cuts every host into
// virtual nodes of `ranks_per_node` ranks. 0: every host is one node.
//
// Locality is the package, the NUMA node and the PCI address of the GPU, if all ranks of the host
// have a GPU. So rails join GPUs of one place. Next are the package, the NUMA node and the first
// core of the rank, and then the rank itself.
Topology make_topology(std::span<const PeerRecord> records, int ranks_per_node);

}  // namespace hier
