// SPDX-License-Identifier: BSD-3-Clause
// Where devices and cores are, by a loaded hwloc topology. Whoever loads it, of this machine or of
// a file, is to keep PCI devices and bridges.
#pragma once

#include <cstddef>
#include <string>

#include "hier/topology.hpp"

struct hwloc_topology;
struct hwloc_bitmap_s;

namespace hier {

// Of the device at a PCI address (0000:1b:00.0). What hwloc does not know keeps its address only.
Position position_of_pci(hwloc_topology* topology, const std::string& address);

// Package and NUMA node that hold all of these cores.
Position position_of_cores(hwloc_topology* topology, const hwloc_bitmap_s* cores);

// The PCI address of an RDMA device or network interface (mlx5_0, eth0), by the kernel's /sys at
// `sysfs`; empty: it has none. (hwloc knows them too, but not without asking the GPU runtimes.)
std::string pci_of_network_device(const std::string& name, const std::string& sysfs = "/sys");

// What the kernel says of a network device's rate, kind and subnet, as text that begins with the
// rate: "400 Gb/sec (4X NDR) InfiniBand fe80:0000:0000:0000" for mlx5_0:1, "25000" (Mbit/s) for
// eth0; empty: not known.
std::string link_of_network_device(const std::string& name, const std::string& sysfs = "/sys");

// Has pages of this memory on a NUMA node, as far as it has room, and moves those that this process
// alone has mapped. False: nothing was done, for there is one node only or the system refuses.
bool place_memory(hwloc_topology* topology, void* memory, std::size_t bytes, int numa);

}  // namespace hier
