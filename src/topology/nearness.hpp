// SPDX-License-Identifier: BSD-3-Clause
// How near two positions of a host are, and which network devices each of its ranks takes.
//
//        package 0                    package 1
//      bridge   bridge              bridge
//      /    \      |                   |
//    port  port   port               port        GPU 0 and nic 0: same switch
//     |     |      |                   |         GPU 0 and nic 1: same host bridge
//   switch nic1   nic2               nic3        GPU 0 and nic 2: same NUMA node, or package
//    |  |                                        GPU 0 and nic 3: elsewhere
//  GPU0 nic0
//
// Pure: ranks that know the same positions come to the same result.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hier/topology.hpp"

namespace hier {

enum class Nearness { same_switch, same_host_bridge, same_numa, same_package, elsewhere };

// What is not known is elsewhere.
Nearness nearness(const Position& a, const Position& b);
const char* to_string(Nearness nearness);

// Is anything known of where this is?
bool is_placed(const Position& position);

// The text of a PCI address, 0000:1b:00.0, and back; -1: it is none.
std::int64_t parse_pci(const std::string& text);
std::string pci_text(std::int64_t pci);

// What decides on the network devices of each of a host's ranks: its GPU, else its cores. A GPU that
// all of several ranks name is the one that a runtime gives to those who have not chosen: nobody's.
std::vector<Position> rank_positions(std::span<const PeerRecord> host);

// The ranks that share a host's devices, virtual nodes or not, and which of them `rank` is.
struct HostRanks {
    std::vector<Position> positions;
    int self;
};
HostRanks host_ranks(std::span<const PeerRecord> records, const Topology& topology, int rank);

struct Nic {
    Position position;
    std::string link = {};  // its rate, kind and subnet, as the system says; "": not known
};

// For each rank the indices of its devices, as many as any other has. The first is one of the
// nearest, all of which get as many ranks as can be; without positions rank l has device
// l mod nics.size(). Where each rank finds one more among its nearest that nobody has, and whose
// link is as its first one's, it gets that, too, up to `most`. `nics` is not empty.
std::vector<std::vector<int>> assign_nics(std::span<const Position> ranks,
                                          std::span<const Nic> nics, int most);

}  // namespace hier
