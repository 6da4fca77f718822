// SPDX-License-Identifier: BSD-3-Clause
#include "topology/locality.hpp"

#include <hwloc.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "topology/nearness.hpp"

namespace hier {
namespace {

struct BitmapFree {
    void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};

hwloc_obj_t next(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_obj_t previous)
{
    return hwloc_get_next_obj_by_type(topology, type, previous);
}

int package_of(hwloc_topology_t topology, hwloc_const_cpuset_t cores)
{
    for (hwloc_obj_t o = next(topology, HWLOC_OBJ_PACKAGE, nullptr); o != nullptr;
         o = next(topology, HWLOC_OBJ_PACKAGE, o)) {
        if (hwloc_bitmap_isincluded(cores, o->cpuset)) return static_cast<int>(o->logical_index);
    }
    return -1;
}

// The smallest NUMA node that holds the cores, and the first of several. The fast memory of a
// package has the same cores as its ordinary memory, and a higher number. The memory of a GPU has
// no cores.
int numa_of(hwloc_topology_t topology, hwloc_const_cpuset_t cores)
{
    hwloc_obj_t best = nullptr;
    for (hwloc_obj_t o = next(topology, HWLOC_OBJ_NUMANODE, nullptr); o != nullptr;
         o = next(topology, HWLOC_OBJ_NUMANODE, o)) {
        if (!hwloc_bitmap_isincluded(cores, o->cpuset)) continue;
        const auto key = [](hwloc_obj_t n) {
            return std::pair(hwloc_bitmap_weight(n->cpuset), n->os_index);
        };
        if (best == nullptr || key(o) < key(best)) best = o;
    }
    return best != nullptr ? static_cast<int>(best->os_index) : -1;
}

// ROCm takes the parts of a GPU (CPX) for functions of its device. The bus has only the first function. nullptr: not known.
hwloc_obj_t find_pci(hwloc_topology_t topology, std::int64_t pci)
{
    hwloc_obj_t found = nullptr;
    for (const std::int64_t each : {pci, pci & ~std::int64_t{7}}) {
        const auto bits = static_cast<unsigned>(each);
        if (found == nullptr && pci >= 0)
            found = hwloc_get_pcidev_by_busid(topology, static_cast<unsigned>(each >> 16),
                                              bits >> 8 & 0xff, bits >> 3 & 0x1f, bits & 7);
    }
    return found;
}

std::string first_line(const std::filesystem::path& file)
{
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

}  // namespace

Position position_of_cores(hwloc_topology* topology, const hwloc_bitmap_s* cores)
{
    Position position;
    if (hwloc_bitmap_iszero(cores)) return position;
    position.package = package_of(topology, cores);
    position.numa = numa_of(topology, cores);
    return position;
}

Position position_of_pci(hwloc_topology* topology, const std::string& address)
{
    Position position;
    const std::int64_t pci = parse_pci(address);
    hwloc_obj_t device = find_pci(topology, pci);
    if (device != nullptr)
        position =
            position_of_cores(topology, hwloc_get_non_io_ancestor_obj(topology, device)->cpuset);
    position.pci = pci;
    if (device == nullptr) return position;
    for (hwloc_obj_t o = device->parent; o->type == HWLOC_OBJ_BRIDGE; o = o->parent) {
        const auto number = static_cast<std::int32_t>(o->logical_index);
        if (o->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST) {
            position.host_bridge = number;
        } else {
            position.root_port = number;  // the outermost bridge is the last one
        }
    }
    return position;
}

std::string model_of_pci(hwloc_topology* topology, std::int64_t pci)
{
    const hwloc_obj_t device = find_pci(topology, pci);
    if (device == nullptr) return "";
    const auto& attributes = device->attr->pcidev;
    char text[sizeof "10de:2335"];
    std::snprintf(text, sizeof text, "%04x:%04x", attributes.vendor_id, attributes.device_id);
    return text;
}

std::string pci_of_network_device(const std::string& name, const std::string& sysfs)
{
    for (const char* kind : {"infiniband", "net"}) {
        std::error_code none;
        auto at = std::filesystem::canonical(
            std::filesystem::path(sysfs) / "class" / kind / name / "device", none);
        // An interface of virtio is on a device of its own, below the PCI device.
        for (; !none && at.has_relative_path(); at = at.parent_path()) {
            if (parse_pci(at.filename()) >= 0) return at.filename();
        }
    }
    return "";
}

std::string link_of_network_device(const std::string& name, const std::string& sysfs)
{
    const std::filesystem::path classes = std::filesystem::path(sysfs) / "class";
    const std::size_t colon = name.find(':');
    if (colon == std::string::npos) return first_line(classes / "net" / name / "speed");
    const auto port =
        classes / "infiniband" / name.substr(0, colon) / "ports" / name.substr(colon + 1);
    const std::string rate = first_line(port / "rate");
    constexpr std::size_t subnet_prefix =
        19;  // "fe80:0000:0000:0000", the first half of an address
    return rate.empty() ? ""
                        : rate + ' ' + first_line(port / "link_layer") + ' ' +
                              first_line(port / "gids/0").substr(0, subnet_prefix);
}

bool place_memory(hwloc_topology* topology, void* memory, std::size_t bytes, int numa)
{
    if (numa < 0 || hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) < 2) return false;
    const std::unique_ptr<hwloc_bitmap_s, BitmapFree> nodes(hwloc_bitmap_alloc());
    if (!nodes || hwloc_bitmap_only(nodes.get(), static_cast<unsigned>(numa)) != 0) return false;
    // Not strict: a full node is no error.
    return hwloc_set_area_membind(topology, memory, bytes, nodes.get(), HWLOC_MEMBIND_BIND,
                                  HWLOC_MEMBIND_BYNODESET | HWLOC_MEMBIND_MIGRATE) == 0;
}

}  // namespace hier
