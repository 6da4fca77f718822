// SPDX-License-Identifier: BSD-3-Clause
// This process and its machine, as far as the process can find out. The machine is looked at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hier/topology.hpp"

namespace hier {

// The record of this process without its GPU. A field that cannot be found out is -1 or empty. Then
// the record only orders ranks less well.
PeerRecord discover_self();

// A machine, so that figures of another one are not taken for its own.
struct Machine {
    std::string cpu;       // the model's name; "": not known
    int cores = 0;         // hardware threads
    std::string gpu = {};  // its PCI vendor and model, "10de:2335"; "": not known, or none is used

    bool operator==(const Machine&) const = default;
    // A process that uses no GPU does not know the machine's.
    bool is_like(const Machine& other) const
    {
        const bool knows_both = !gpu.empty() && !other.gpu.empty();
        return cpu == other.cpu && cores == other.cores && (!knows_both || gpu == other.gpu);
    }
};
// `gpu`: the Position::pci of the process's GPU; -1: none is used.
Machine this_machine(std::int64_t gpu);

// The functions of topology/locality.hpp for this machine.
Position position_of_pci(const std::string& address);
int numa_nodes();  // 0: not known
// Lets the calling thread run on all cores of the NUMA nodes to which it is bound.
void leave_core();
bool place_memory(void* memory, std::size_t bytes, int numa);

}  // namespace hier
