// SPDX-License-Identifier: BSD-3-Clause
// The places of devices and cores on machines that are files of hwloc (fixtures/), and the kernel's
// words about network devices.
#include <hwloc.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "test/support/source_tree.hpp"
#include "topology/discovery.hpp"
#include "topology/locality.hpp"
#include "topology/nearness.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;
namespace fs = std::filesystem;

struct Destroy {
    void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Machine = std::unique_ptr<hwloc_topology, Destroy>;

Machine load(const char* fixture)
{
    const std::string file = source_file(std::string("test/unit/topology/fixtures/") + fixture);
    hwloc_topology_t loaded = nullptr;
    if (hwloc_topology_init(&loaded) != 0) return nullptr;
    Machine machine(loaded);
    if (hwloc_topology_set_xml(loaded, file.c_str()) != 0) return nullptr;
    hwloc_topology_set_io_types_filter(loaded, HWLOC_TYPE_FILTER_KEEP_ALL);
    return hwloc_topology_load(loaded) == 0 ? std::move(machine) : nullptr;
}

std::string text_of(const Position& p)
{
    return (p.pci < 0 ? "none" : pci_text(p.pci)) + " package " + std::to_string(p.package) +
           " numa " + std::to_string(p.numa) + " bridge " + std::to_string(p.host_bridge) +
           " port " + std::to_string(p.root_port);
}

// ---- devices

struct Place {
    const char* machine;
    const char* device;
    const char* wanted;
};
const Place places[] = {
    {"two-sockets.xml", "0000:1b:00.0", "0000:1b:00.0 package 0 numa 0 bridge 0 port 1"},
    {"two-sockets.xml", "0000:1c:00.0", "0000:1c:00.0 package 0 numa 0 bridge 0 port 1"},
    {"two-sockets.xml", "00000000:1F:00.0", "0000:1f:00.0 package 0 numa 0 bridge 0 port 5"},
    {"two-sockets.xml", "0000:51:00.0", "0000:51:00.0 package 1 numa 1 bridge 8 port 9"},
    // On a package of two NUMA nodes; on the machine of two packages.
    {"two-sockets.xml", "0000:91:00.0", "0000:91:00.0 package 1 numa -1 bridge 12 port 13"},
    {"two-sockets.xml", "0000:e1:00.0", "0000:e1:00.0 package -1 numa -1 bridge 14 port 15"},
    // Fast memory has the same cores, and GPU memory has none. So neither is the node of a device.
    // No port.
    {"virtual-machine.xml", "0000:00:03.0", "0000:00:03.0 package 0 numa 0 bridge 0 port -1"},
    // A part of a GPU is a function that the bus does not have.
    {"two-sockets.xml", "0000:3b:00.5", "0000:3b:00.5 package 0 numa 0 bridge 6 port 7"},
    // Not there; no address.
    {"two-sockets.xml", "0000:0b:00.0", "0000:0b:00.0 package -1 numa -1 bridge -1 port -1"},
    {"two-sockets.xml", "0001:1b:00.0", "0001:1b:00.0 package -1 numa -1 bridge -1 port -1"},
    {"two-sockets.xml", "", "none package -1 numa -1 bridge -1 port -1"},
    {"two-sockets.xml", "eth0", "none package -1 numa -1 bridge -1 port -1"},
    {"two-sockets.xml", "0000:1b:20.0", "none package -1 numa -1 bridge -1 port -1"},
    {"two-sockets.xml", "0000:1b:00.0x", "none package -1 numa -1 bridge -1 port -1"},
};

const char* every_device_has_its_place()
{
    for (const Place& p : places) {
        const Machine machine = load(p.machine);
        if (!machine) return keep(std::string("cannot load ") + p.machine);
        const std::string found = text_of(position_of_pci(machine.get(), p.device));
        if (found != p.wanted) return keep(found + ", not " + p.wanted);
    }
    return nullptr;
}

void test_places(void**) { expect_no_reason(every_device_has_its_place()); }

void test_models(void**)
{
    const Machine machine = load("two-sockets.xml");
    assert_true(machine != nullptr);
    const auto model = [&](const char* address) {
        return model_of_pci(machine.get(), parse_pci(address));
    };
    assert_string_equal(model("0000:1b:00.0").c_str(), "10de:2335");
    assert_string_equal(model("0000:1b:00.5").c_str(), "10de:2335");  // a part of a GPU
    for (const char* unknown : {"0000:0b:00.0", ""})
        assert_string_equal(model(unknown).c_str(), "");
}

struct Pair {
    const char *a, *b;
    Nearness wanted;
};
const Pair pairs[] = {
    {"0000:1b:00.0", "0000:1c:00.0", Nearness::same_switch},
    {"0000:1b:00.0", "0000:1b:00.0", Nearness::same_switch},
    {"0000:3b:00.0", "0000:3b:00.3", Nearness::same_switch},
    {"0000:1b:00.0", "0000:1f:00.0", Nearness::same_host_bridge},
    {"0000:1b:00.0", "0000:3b:00.0", Nearness::same_numa},
    {"0000:51:00.0", "0000:71:00.0", Nearness::same_package},
    {"0000:51:00.0", "0000:91:00.0", Nearness::same_package},
    {"0000:1b:00.0", "0000:71:00.0", Nearness::elsewhere},
    {"0000:1b:00.0", "0000:e1:00.0", Nearness::elsewhere},
    {"0000:1b:00.0", "0000:0b:00.0", Nearness::elsewhere},
    {"0000:0b:00.0", "0000:1b:00.7", Nearness::elsewhere},
};

const char* every_pair_is_as_near()
{
    const Machine machine = load("two-sockets.xml");
    if (!machine) return "cannot load two-sockets.xml";
    for (const Pair& p : pairs) {
        const Position a = position_of_pci(machine.get(), p.a);
        const Position b = position_of_pci(machine.get(), p.b);
        if (nearness(a, b) != p.wanted || nearness(b, a) != p.wanted)
            return keep(std::string(p.a) + " and " + p.b + ": " + to_string(nearness(a, b)));
    }
    return nullptr;
}

void test_pairs(void**) { expect_no_reason(every_pair_is_as_near()); }

// ---- cores

std::string place_of_cores(hwloc_topology_t machine, const char* list)
{
    hwloc_bitmap_t cores = hwloc_bitmap_alloc();
    hwloc_bitmap_list_sscanf(cores, list);
    const Position position = position_of_cores(machine, cores);
    hwloc_bitmap_free(cores);
    return text_of(position);
}

const char* cores_have_their_place()
{
    const Machine machine = load("two-sockets.xml");
    if (!machine) return "cannot load two-sockets.xml";
    const char* const cases[][2] = {{"2", "package 0 numa 0"},     {"0-3", "package 0 numa 0"},
                                    {"6", "package 1 numa 2"},     {"5-6", "package 1 numa -1"},
                                    {"3-4", "package -1 numa -1"}, {"", "package -1 numa -1"}};
    for (const auto& [cores, wanted] : cases) {
        const std::string found = place_of_cores(machine.get(), cores);
        if (found != std::string("none ") + wanted + " bridge -1 port -1")
            return keep(std::string("cores ") + cores + ": " + found);
    }
    return nullptr;
}

void test_cores(void**) { expect_no_reason(cores_have_their_place()); }

// ---- network devices

void write_file(const fs::path& path, const std::string& text)
{
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
}

// A /sys with an RDMA device, its interface, one of virtio, one that is not on PCI, and one that is
// nowhere.
void make_sysfs(const fs::path& root)
{
    const fs::path pci = root / "devices/pci0000:10/0000:10:01.0";
    fs::create_directories(pci / "0000:1c:00.0/infiniband/mlx5_0");
    fs::create_directories(pci / "0000:1d:00.0/virtio2/net/eth0");
    fs::create_directories(root / "devices/platform/soc/net/end0");
    fs::create_directories(root / "class/infiniband/mlx5_0");
    for (const char* name : {"eth0", "ib0", "end0", "lo"})
        fs::create_directories(root / "class/net" / name);
    fs::create_symlink(pci / "0000:1c:00.0", root / "class/infiniband/mlx5_0/device");
    write_file(root / "class/infiniband/mlx5_0/ports/2/rate", "400 Gb/sec (4X NDR)");
    write_file(root / "class/infiniband/mlx5_0/ports/2/link_layer", "InfiniBand");
    write_file(root / "class/infiniband/mlx5_0/ports/2/gids/0",
               "fe80:0000:0000:0001:0002:c903:0000:1491");
    write_file(root / "class/net/eth0/speed", "25000");
    fs::create_symlink(pci / "0000:1c:00.0", root / "class/net/ib0/device");
    fs::create_symlink(pci / "0000:1d:00.0/virtio2", root / "class/net/eth0/device");
    fs::create_symlink(root / "devices/platform/soc", root / "class/net/end0/device");
}

std::string every_name_has_its_address(const fs::path& root)
{
    const char* const cases[][2] = {{"mlx5_0", "0000:1c:00.0"},
                                    {"ib0", "0000:1c:00.0"},
                                    {"eth0", "0000:1d:00.0"},
                                    {"end0", ""},
                                    {"lo", ""},
                                    {"nosuch0", ""},
                                    {"", ""},
                                    {"..", ""}};
    for (const auto& [name, wanted] : cases) {
        const std::string found = pci_of_network_device(name, root);
        if (found != wanted) return std::string(name) + ": \"" + found + '"';
    }
    return "";
}

std::string every_link_is_read(const fs::path& root)
{
    const char* const cases[][2] = {
        {"mlx5_0:2", "400 Gb/sec (4X NDR) InfiniBand fe80:0000:0000:0001"},
        {"mlx5_0:1", ""},
        {"eth0", "25000"},
        {"lo", ""},
        {"nosuch0", ""},
        {"nosuch0:1", ""},
        {"", ""}};
    for (const auto& [name, wanted] : cases) {
        const std::string found = link_of_network_device(name, root);
        if (found != wanted) return std::string(name) + ": \"" + found + '"';
    }
    return "";
}

const char* names_by_sysfs()
{
    std::string directory = (fs::temp_directory_path() / "hier-sysfs-XXXXXX").string();
    if (mkdtemp(directory.data()) == nullptr) return "no temporary directory";
    make_sysfs(directory);
    std::string fault = every_name_has_its_address(directory);
    if (fault.empty()) fault = every_link_is_read(directory);
    fs::remove_all(directory);
    return keep(fault);
}

void test_names(void**) { expect_no_reason(names_by_sysfs()); }

// ---- this machine

// A GPU that hwloc does not see, like those of test/sim. Memory that cannot be placed.
bool unknown_is_no_error()
{
    const Position p = position_of_pci("ffff:0b:00.0");
    char memory[64];
    return p.pci == parse_pci("ffff:0b:00.0") && !is_placed(p) && position_of_pci("").pci == -1 &&
           !place_memory(memory, sizeof memory, -1) && !place_memory(memory, sizeof memory, 9999);
}

void test_this_machine(void**)
{
    assert_true(unknown_is_no_error());
    assert_true(numa_nodes() >= 1);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_places), cmocka_unit_test(test_models),
        cmocka_unit_test(test_pairs),  cmocka_unit_test(test_cores),
        cmocka_unit_test(test_names),  cmocka_unit_test(test_this_machine),
    };
    return hier::test::run_cases(argc, argv, "locality", tests);
}
