// SPDX-License-Identifier: BSD-3-Clause
// This process and its machine, as far as the process can find out. The machine is looked at once.
#pragma once

#include <cstddef>
#include <string>

#include "hier/topology.hpp"

namespace hier {

// The record of this process without its GPU. A field that cannot be found out is -1 or empty. Then
// the record only orders ranks less well.
PeerRecord discover_self();

// A machine, so that figures of another one are not taken for its own.
struct Machine {
    std::string cpu;  // the model's name; "": not known
    int cores = 0;    // hardware threads

    bool operator==(const Machine&) const = default;
};
Machine this_machine();

// The functions of topology/locality.hpp for this machine.
Position position_of_pci(const std::string& address);
int numa_nodes();  // 0: not known
// Lets the calling thread run on all cores of the NUMA nodes to which it is bound.
void leave_core();
bool place_memory(void* memory, std::size_t bytes, int numa);

}  // namespace hier
