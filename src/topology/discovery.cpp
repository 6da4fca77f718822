// SPDX-License-Identifier: BSD-3-Clause
#include "topology/discovery.hpp"

#include <hwloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "topology/locality.hpp"
#include "topology/nearness.hpp"

namespace hier {
namespace {

std::uint64_t fnv1a(const std::string& text)
{
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

std::string device_and_inode(const char* path)
{
    struct stat s {};
    if (stat(path, &s) != 0) return "?";
    return std::to_string(s.st_dev) + ":" + std::to_string(s.st_ino);
}

// Ranks share a node when they share a kernel, process ids and /dev/shm. Process ids are for copies
// between processes. Host name and network have to be equal too: by these a user separates ranks.
std::uint64_t node_key()
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    std::string identity = std::string(host) + '|' + boot;
    for (const char* part :
         {"/proc/self/ns/pid", "/proc/self/ns/ipc", "/proc/self/ns/net", "/dev/shm"}) {
        identity += '|' + device_and_inode(part);
    }
    return fnv1a(identity);
}

struct TopologyDestroy {
    void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using LoadedTopology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, TopologyDestroy>;
struct BitmapFree {
    void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};

LoadedTopology load(hwloc_type_filter_e devices)
{
    hwloc_topology_t made = nullptr;
    if (hwloc_topology_init(&made) != 0) return nullptr;
    LoadedTopology topology(made);
    // The whole machine, whatever cores this rank may use: numbers of packages and bridges have to
    // mean the same on all ranks of a host. Without hwloc's x86 component, which would bind this
    // thread to one core after the other.
#if HWLOC_API_VERSION < 0x00020100
    hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_WHOLE_SYSTEM);
#else
    hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_components(made, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    // Without hwloc's pci component, which leaks. The Linux component finds the same devices.
    hwloc_topology_set_components(made, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "pci");
#endif
    hwloc_topology_set_all_types_filter(made, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(made, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    // Groups stand for parts that only NUMA nodes or PCI devices tell apart. No OS devices: hwloc
    // would open the GPUs' libraries to find them.
    hwloc_topology_set_type_filter(made, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    hwloc_topology_set_type_filter(made, HWLOC_OBJ_PCI_DEVICE, devices);
    hwloc_topology_set_type_filter(made, HWLOC_OBJ_BRIDGE, devices);
    return hwloc_topology_load(made) == 0 ? std::move(topology) : nullptr;
}

// Each is loaded once. nullptr: hwloc does not work here. machine_with_devices() reads the
// configuration of devices, which takes 10 ms in a virtual machine. So only processes with a GPU or
// with RDMA load it.
hwloc_topology_t machine()
{
    static const LoadedTopology loaded = load(HWLOC_TYPE_FILTER_KEEP_NONE);
    return loaded.get();
}

hwloc_topology_t machine_with_devices()
{
    static const LoadedTopology loaded = load(HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    return loaded.get();
}

void add_locality(PeerRecord& record)
{
    hwloc_topology_t topology = machine();
    if (topology == nullptr) return;
    record.cpus = hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topology));
    const std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, BitmapFree> bound(
        hwloc_bitmap_alloc());
    if (!bound || hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_PROCESS) != 0) return;
    if (hwloc_bitmap_isincluded(hwloc_topology_get_topology_cpuset(topology), bound.get()))
        return;  // not bound: all cores are allowed
    const Position position = position_of_cores(topology, bound.get());
    record.package = position.package;
    record.numa = position.numa;
    record.first_pu = hwloc_bitmap_first(bound.get());
}

PeerRecord discover()
{
    PeerRecord record{};
    record.node_key = node_key();
    record.package = record.numa = record.first_pu = -1;
    record.cpus = static_cast<std::int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
    add_locality(record);
    return record;
}

}  // namespace

PeerRecord discover_self()
{
    static const PeerRecord found = discover();
    PeerRecord record = found;
    record.pid = static_cast<std::int32_t>(getpid());
    return record;
}

Machine this_machine(std::int64_t gpu)
{
    hwloc_topology_t topology = machine();
    if (topology == nullptr) return {};
    const hwloc_obj_t root = hwloc_get_root_obj(topology);
    const hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char* model = nullptr;
    for (const hwloc_obj_t object : {package, root}) {
        if (model == nullptr && object != nullptr)
            model = hwloc_obj_get_info_by_name(object, "CPUModel");
    }
    const bool has_gpu = gpu >= 0 && machine_with_devices() != nullptr;
    return {model != nullptr ? model : "", hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU),
            has_gpu ? model_of_pci(machine_with_devices(), gpu) : ""};
}

Position position_of_pci(const std::string& address)
{
    Position unknown;
    unknown.pci = parse_pci(address);
    if (unknown.pci < 0 || machine_with_devices() == nullptr) return unknown;
    return position_of_pci(machine_with_devices(), address);
}

int numa_nodes()
{
    return machine() != nullptr ? hwloc_get_nbobjs_by_type(machine(), HWLOC_OBJ_NUMANODE) : 0;
}

void leave_core()
{
    (void)discover_self();  // asks where all threads of the process are bound, so it comes first
    hwloc_topology_t topology = machine();
    if (topology == nullptr) return;
    using Bitmap = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, BitmapFree>;
    const Bitmap cores(hwloc_bitmap_alloc());
    const Bitmap nodes(hwloc_bitmap_alloc());
    if (!cores || !nodes || hwloc_get_cpubind(topology, cores.get(), HWLOC_CPUBIND_THREAD) != 0)
        return;
    hwloc_cpuset_to_nodeset(topology, cores.get(), nodes.get());
    hwloc_cpuset_from_nodeset(topology, cores.get(), nodes.get());
    hwloc_bitmap_and(cores.get(), cores.get(), hwloc_topology_get_allowed_cpuset(topology));
    if (hwloc_bitmap_iszero(cores.get()) == 0)
        (void)hwloc_set_cpubind(topology, cores.get(), HWLOC_CPUBIND_THREAD);
}

bool place_memory(void* memory, std::size_t bytes, int numa)
{
    return machine() != nullptr && place_memory(machine(), memory, bytes, numa);
}

}  // namespace hier
