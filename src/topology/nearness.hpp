// SPDX-License-Identifier: BSD-3-Clause
// How near two positions of a host are, and the network devices that each of its ranks takes.
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
// Pure functions: ranks that know the same positions get the same result.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hier/topology.hpp"

namespace hier {

enum class Nearness { same_switch, same_host_bridge, same_numa, same_package, elsewhere };

// Positions that are not known are elsewhere.
Nearness nearness(const Position& a, const Position& b);
const char* to_string(Nearness nearness);

// Is anything known of this position?
bool is_placed(const Position& position);

// A PCI address as a number, and its text 0000:1b:00.0. -1: the text is no address.
std::int64_t parse_pci(const std::string& text);
std::string pci_text(std::int64_t pci);

// The positions that decide on the network devices of a host's ranks: of the GPU, or else of the
// cores. If all of several ranks name the same GPU, it is the runtime's default and no choice of
// theirs. Then their cores decide.
std::vector<Position> rank_positions(std::span<const PeerRecord> host);

// The ranks that share a host's devices, whether they are on virtual nodes or not. `self` is the
// index of `rank`.
struct HostRanks {
    std::vector<Position> positions;
    int self;
};
HostRanks host_ranks(std::span<const PeerRecord> records, const Topology& topology, int rank);

struct Nic {
    Position position;
    std::string link = {};  // rate, kind and subnet, as the system tells them; "": not known
};

// The indices of each rank's devices, equally many for all ranks. `nics` is not empty.
//
// The first device is one of the rank's nearest, and ranks are spread over these as evenly as
// possible. Without positions rank l has device l mod nics.size(). A rank gets one more device if
// every rank finds one among its nearest that nobody has, with the same link as its first. `most`
// is the limit.
std::vector<std::vector<int>> assign_nics(std::span<const Position> ranks,
                                          std::span<const Nic> nics, int most);

}  // namespace hier
