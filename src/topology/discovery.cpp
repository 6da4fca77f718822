#include "topology/discovery.hpp"

#include <hwloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

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

// Ranks share a node when they share a kernel, process ids (for copies between processes),
// /dev/shm, and are meant to by host name and network.
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
struct BitmapFree {
    void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};

// The one object of this type that covers all the cores in `set`, else -1.
int covering(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_const_cpuset_t set)
{
    int found = -1;
    for (hwloc_obj_t o = hwloc_get_next_obj_by_type(topology, type, nullptr); o != nullptr;
         o = hwloc_get_next_obj_by_type(topology, type, o)) {
        if (hwloc_bitmap_isincluded(set, o->cpuset)) found = static_cast<int>(o->logical_index);
    }
    return found;
}

void add_locality(PeerRecord& record)
{
    hwloc_topology_t loaded = nullptr;
    if (hwloc_topology_init(&loaded) != 0) return;
    const std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, TopologyDestroy> topology(
        loaded);
    hwloc_topology_set_all_types_filter(loaded, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(loaded, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(loaded) != 0) return;

    hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(loaded);
    record.cpus = hwloc_bitmap_weight(allowed);
    const std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, BitmapFree> bound(
        hwloc_bitmap_alloc());
    if (!bound || hwloc_get_cpubind(loaded, bound.get(), HWLOC_CPUBIND_PROCESS) != 0) return;
    if (hwloc_bitmap_isincluded(allowed, bound.get())) return;  // not bound at all
    record.package = covering(loaded, HWLOC_OBJ_PACKAGE, bound.get());
    record.numa = covering(loaded, HWLOC_OBJ_NUMANODE, bound.get());
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
    static const PeerRecord found = discover();  // hwloc takes some ms: once
    PeerRecord record = found;
    record.pid = static_cast<std::int32_t>(getpid());
    return record;
}

}  // namespace hier
