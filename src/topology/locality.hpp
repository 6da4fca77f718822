// SPDX-License-Identifier: BSD-3-Clause
// The places of devices and cores, by a loaded hwloc topology, of this machine or of a file. The
// topology has to keep PCI devices and bridges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hier/topology.hpp"

struct hwloc_topology;
struct hwloc_bitmap_s;

namespace hier {

// The position of the device at a PCI address (0000:1b:00.0). If hwloc does not know the device,
// the position has only the address.
Position position_of_pci(hwloc_topology* topology, const std::string& address);

// The vendor and the model of the PCI device with this Position::pci: "10de:2335". Empty: not known.
std::string model_of_pci(hwloc_topology* topology, std::int64_t pci);

// The package and the NUMA node that hold all of these cores.
Position position_of_cores(hwloc_topology* topology, const hwloc_bitmap_s* cores);

// The PCI address of an RDMA device or network interface (mlx5_0, eth0), by the kernel's /sys at
// `sysfs`. Empty: it has none. hwloc finds these devices too, but only with the libraries of the
// GPUs.
std::string pci_of_network_device(const std::string& name, const std::string& sysfs = "/sys");

// The rate, kind and subnet of a network device, as the kernel tells them. The text begins with the
// rate: "400 Gb/sec (4X NDR) InfiniBand fe80:0000:0000:0000" for mlx5_0:1, "25000" in Mbit/s for
// eth0. Empty: not known.
std::string link_of_network_device(const std::string& name, const std::string& sysfs = "/sys");

// Places the pages of this memory on a NUMA node, as far as the node has room. Moves pages that
// this process alone has mapped. False: there is only one node, or the system refuses, and nothing
// was done.
bool place_memory(hwloc_topology* topology, void* memory, std::size_t bytes, int numa);

}  // namespace hier
