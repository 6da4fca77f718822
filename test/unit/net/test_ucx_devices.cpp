// SPDX-License-Identifier: BSD-3-Clause
// The network that a rank takes, on invented machines.
#include <string>
#include <vector>

#include "base/error.hpp"
#include "net/devices/network_choice.hpp"
#include "net/devices/tcp_interfaces.hpp"
#include "net/ucx/ucx_devices.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

const std::vector<NetworkDevice> plain = {{"tcp", "eth1"}, {"tcp", "eth0"}, {"tcp", "lo"}};
const std::vector<NetworkDevice> wired = {
    {"tcp", "eth0", {}, "25000"}, {"tcp", "eth1", {}, "25000"}, {"tcp", "eth2", {}, "1000"}};
// Devices of virtual machines, which do not know their speed.
const std::vector<NetworkDevice> virtual_ones = {{"tcp", "eth0", {}, "-1"},
                                                 {"tcp", "eth1", {}, "-1"}};
const std::vector<NetworkDevice> loopback = {{"tcp", "lo"}};
const std::vector<NetworkDevice> cluster = {{"tcp", "eth0"},         {"tcp", "lo"},
                                            {"rc_mlx5", "mlx5_1:1"}, {"dc_mlx5", "mlx5_1:1"},
                                            {"dc_mlx5", "mlx5_0:1"}, {"ud_mlx5", "mlx5_0:1"}};

Position behind(int root_port)
{
    Position p;
    p.pci = p.root_port = p.host_bridge = root_port;
    p.package = p.numa = root_port / 4;
    return p;
}

// Names do not tell which device is near: device 10 comes before device 2 by name.
const std::vector<NetworkDevice> rails = {{"dc_mlx5", "mlx5_10:1", behind(5)},
                                          {"rc_mlx5", "mlx5_2:1", behind(1)},
                                          {"dc_mlx5", "mlx5_2:1", behind(1)},
                                          {"dc_mlx5", "mlx5_3:1", behind(3)},
                                          {"tcp", "eth0", behind(1)}};
// Two devices for each of two GPUs, and one device of another network.
const std::vector<NetworkDevice> pairs = {{"dc_mlx5", "mlx5_0:1", behind(1), "400 InfiniBand"},
                                          {"dc_mlx5", "mlx5_1:1", behind(1), "400 InfiniBand"},
                                          {"dc_mlx5", "mlx5_2:1", behind(1), "400 Ethernet"},
                                          {"dc_mlx5", "mlx5_3:1", behind(5), "400 InfiniBand"},
                                          {"dc_mlx5", "mlx5_4:1", behind(5), "400 InfiniBand"}};
// A port of a storage network beside those of the compute network.
const std::vector<NetworkDevice> storage = {
    {"rc_mlx5", "mlx5_0:1", behind(5), "400 Gb/sec (4X NDR) InfiniBand"},
    {"rc_mlx5", "mlx5_1:1", behind(1), "100 Gb/sec (4X EDR) Ethernet"},
    {"rc_mlx5", "mlx5_2:1", behind(1), "400 Gb/sec (4X NDR) Ethernet"}};
const std::vector<NetworkDevice> clouds = {
    {"rc_mlx5", "mlx5_an0:1", behind(1), "40 Gb/sec (4X QDR) Ethernet"},
    {"rc_mlx5", "mlx5_ib0:1", behind(5), "400 Gb/sec (4X NDR) Ethernet"},
    {"rc_mlx5", "mlx5_ib1:1", behind(5), "400 Gb/sec (4X NDR) Ethernet"}};
// The many devices of the compute network move more together than a single fast device of another
// one.
const std::vector<NetworkDevice> many = {
    {"rc_mlx5", "mlx5_0:1", behind(1), "200 Gb/sec (4X HDR) Ethernet"},
    {"rc_mlx5", "mlx5_1:1", behind(3), "200 Gb/sec (4X HDR) Ethernet"},
    {"rc_mlx5", "mlx5_2:1", behind(5), "200 Gb/sec (4X HDR) Ethernet"},
    {"rc_mlx5", "mlx5_3:1", behind(5), "400 Gb/sec (4X NDR) InfiniBand"}};
// Not every vendor has DC, and not every device of a host.
const std::vector<NetworkDevice> mixed = {{"rc_verbs", "bnxt_re0:1", behind(1)},
                                          {"rc_verbs", "mlx5_0:1", behind(5)},
                                          {"rc_mlx5", "mlx5_0:1", behind(5)},
                                          {"dc_mlx5", "mlx5_0:1", behind(5)},
                                          {"ud_verbs", "bnxt_re0:1", behind(1)}};
const std::vector<Position> two_gpus = {behind(5), behind(1)};
// These devices have no positions.
const std::vector<Position> six(6), one(1);
const std::vector<Position> gpus = {behind(5), behind(3), behind(1), behind(7)};

struct Case {
    const std::vector<NetworkDevice>& found;
    const char* devices;
    const char* transports;
    const char* default_interface;
    const std::vector<Position>& ranks;
    int self;
    const char* wanted;  // a word for each device, then the transports: "eth0 eth1 tcp"
    int max_devices = 4;
};

std::string text_of(const std::vector<NetworkChoice>& choices)
{
    std::string out;
    for (const NetworkChoice& c : choices) {
        out += c.devices;
        if (c.connection > 0) out += '#' + std::to_string(c.connection);
        out += ' ';
    }
    return out + choices.back().transports;
}

const Case cases[] = {
    // The preferred interface; without one the first, but the loopback only if it is alone.
    {plain, "auto", "auto", "eth1", six, 0, "eth1 tcp"},
    {plain, "auto", "auto", "eth1", six, 5, "eth1 tcp"},
    {plain, "auto", "auto", "", six, 0, "eth0 tcp"},
    {plain, "auto", "auto", "wlan7", six, 0, "eth0 tcp"},
    {plain, "auto", "auto", "lo", six, 0, "lo tcp"},
    {loopback, "auto", "auto", "", six, 0, "lo tcp"},
    // RDMA comes before TCP. The local ranks take the devices in turn.
    {cluster, "auto", "auto", "eth0", six, 0, "mlx5_0:1 rc,dc"},
    {cluster, "auto", "auto", "eth0", six, 1, "mlx5_1:1 rc,dc"},
    {cluster, "auto", "auto", "eth0", six, 2, "mlx5_0:1 rc,dc"},
    // The nearest device, of all devices or of the list.
    {rails, "auto", "auto", "eth0", gpus, 0, "mlx5_10:1 rc,dc"},
    {rails, "auto", "auto", "eth0", gpus, 1, "mlx5_3:1 rc,dc"},
    {rails, "auto", "auto", "eth0", gpus, 2, "mlx5_2:1 rc,dc"},
    {rails, "auto", "auto", "eth0", gpus, 3, "mlx5_10:1 rc,dc"},
    {rails, "auto", "auto", "eth0", six, 0, "mlx5_2:1 rc,dc"},
    {rails, "auto", "auto", "eth0", six, 2, "mlx5_10:1 rc,dc"},
    {rails, "mlx5_10:1,mlx5_2:1", "auto", "eth0", gpus, 1, "mlx5_2:1 rc,dc"},
    {rails, "eth0,mlx5_3:1", "auto", "eth0", gpus, 0, "mlx5_3:1 rc,dc"},
    {rails, "mlx5_10:1,mlx5_2:1", "rc", "eth0", gpus, 1, "mlx5_10:1,mlx5_2:1 rc"},
    // The rank's share: of the devices that are equally near and of one kind, or of the list.
    {pairs, "auto", "auto", "eth0", two_gpus, 0, "mlx5_3:1 mlx5_4:1 rc,dc"},
    {pairs, "auto", "auto", "eth0", two_gpus, 1, "mlx5_0:1 mlx5_1:1 rc,dc"},
    {pairs, "auto", "auto", "eth0", two_gpus, 1, "mlx5_0:1 rc,dc", 1},
    {pairs, "mlx5_4:1,mlx5_1:1", "auto", "eth0", two_gpus, 1, "mlx5_1:1 rc,dc"},
    {pairs, "auto", "auto", "eth0", one, 0, "mlx5_0:1 mlx5_1:1 mlx5_3:1 mlx5_4:1 rc,dc"},
    {cluster, "auto", "auto", "eth0", one, 0, "mlx5_0:1 mlx5_1:1 rc,dc"},
    // Without a list devices of one network: of the fastest, and of two equally fast ones
    // InfiniBand.
    {many, "auto", "auto", "eth0", two_gpus, 0, "mlx5_2:1 rc"},
    {many, "auto", "auto", "eth0", two_gpus, 1, "mlx5_0:1 rc"},
    {storage, "auto", "auto", "eth0", two_gpus, 1, "mlx5_0:1 rc"},
    {storage, "mlx5_1:1", "auto", "eth0", two_gpus, 0, "mlx5_1:1 rc"},
    {clouds, "auto", "auto", "eth0", two_gpus, 0, "mlx5_ib0:1 rc"},
    {clouds, "auto", "auto", "eth0", two_gpus, 1, "mlx5_ib1:1 rc"},
    {mixed, "auto", "auto", "eth0", gpus, 2, "bnxt_re0:1 rc"},
    {mixed, "auto", "auto", "eth0", gpus, 0, "mlx5_0:1 rc,dc"},
    {wired, "eth1,eth0", "auto", "eth0", one, 0, "eth1 eth0 tcp"},
    {wired, "eth1,eth0", "tcp", "eth0", six, 0, "eth1 tcp"},
    {wired, "eth1,eth0", "tcp", "eth0", six, 1, "eth0 tcp"},
    {wired, "eth2,eth0,eth9", "auto", "eth0", one, 0, "eth0 tcp"},
    {wired, "auto", "auto", "eth0", one, 0, "eth0 tcp"},
    {plain, "eth0,eth1", "auto", "eth0", one, 0, "eth0 tcp", 1},
    {virtual_ones, "eth0,eth1", "auto", "eth0", one, 0, "eth0 eth1 tcp"},
    // Two connections over one interface.
    {virtual_ones, "eth0,eth0", "auto", "eth0", one, 0, "eth0 eth0#1 tcp"},
    {loopback, "lo,lo", "auto", "", one, 0, "lo lo#1 tcp"},
    // Devices and transports as the variables say.
    {cluster, "auto", "tcp", "eth0", six, 1, "eth0 tcp"},
    {cluster, "eth0", "auto", "eth0", six, 1, "eth0 tcp"},
    {cluster, "mlx5_1:1", "auto", "eth0", six, 0, "mlx5_1:1 rc,dc"},
    {cluster, "lo", "tcp", "eth0", six, 0, "lo tcp"},
    // Newer versions of UCX allow names without ports, and lists of excluded devices.
    {cluster, "mlx5_1", "auto", "eth0", six, 0, "mlx5_1:1 rc,dc"},
    {cluster, "^mlx5_0:1", "auto", "eth0", six, 0, "mlx5_1:1 rc,dc"},
    {cluster, "^mlx5_0,mlx5_1", "auto", "eth0", six, 0, "eth0 tcp"},
    {plain, "^eth1,lo", "auto", "eth1", six, 0, "eth0 tcp"},
    {cluster, "mlx5_0:1,eth0", "rc,tcp", "eth0", six, 0, "mlx5_0:1,eth0 rc,tcp"},
    // TCP is switched off, and there is RDMA.
    {cluster, "auto", "^tcp", "eth0", six, 0, "mlx5_0:1 rc,dc"},
    {cluster, "mlx5_1", "^tcp", "eth0", six, 0, "mlx5_1:1 rc,dc"},
    // Transports without a network device. UCX finds its own.
    {cluster, "auto", "posix,cma", "eth0", six, 0, " posix,cma"},
    {cluster, "auto", "all", "eth0", six, 0, " all"},
    // There is no device. UCX itself reports this.
    {{}, "auto", "auto", "eth0", six, 0, " tcp"},
    {{}, "eth0", "auto", "eth0", six, 0, "eth0 tcp"},
};

const char* every_case_is_right()
{
    for (const Case& c : cases) {
        const auto found = text_of(choose_network(c.found, {c.devices, c.transports, c.max_devices},
                                                  c.default_interface, c.ranks, c.self));
        if (found == c.wanted) continue;
        return keep("devices " + std::string(c.devices) + ", transports " + c.transports +
                    ": takes \"" + found + "\", not \"" + c.wanted + '"');
    }
    return nullptr;
}

void test_choice(void**) { expect_no_reason(every_case_is_right()); }

void test_nothing_left(void**)
{
    std::string cause;
    try {
        (void)choose_network(plain, {"^eth0,eth1,lo", "auto", 1}, "eth0", one, 0);
    } catch (const SetupError& e) {
        cause = e.what();
    }
    assert_string_equal(cause.c_str(), "\"^eth0,eth1,lo\" leaves no network device");
}

// Without RDMA there is no network then, whatever is named.
void test_tcp_is_switched_off(void**)
{
    for (const char* devices : {"auto", "eth0", "lo"}) {
        std::string cause;
        try {
            (void)choose_network(plain, {devices, "^tcp", 1}, "eth0", one, 0);
        } catch (const SetupError& e) {
            cause = e.what();
        }
        assert_true(cause.find("TCP is switched off") != std::string::npos);
    }
}

struct Listing {
    const char* include;
    const char* exclude;
    const char* routed;
    const char* wanted;
};

void test_preferred_interface(void**)
{
    const std::vector<Interface> interfaces = {
        {"lo", 0x7f000001, false},  {"br0", 0xac110001, false}, {"eth0", 0x0a000005, true},
        {"eth1", 0x0a4d0105, true}, {"ib0", 0xc0a80005, true},  {"eth1", 0xc0a90005, true}};
    const char* const usual = "127.0.0.1/8,sppp";  // Open MPI excludes
    const Listing listings[] = {
        {"", usual, "eth1", "eth1"},
        {"", "", "ppp0", "eth0"},
        {"", usual, "", "eth0"},
        {"", "eth0,10.77.0.0/16", "", "ib0"},
        {"", "eth0,eth1", "eth1", "ib0"},
        {"", "0.0.0.0/0", "eth1", ""},
        {"", "10.0.0.0/8,ib0", "", "br0"},
        {"eth1", "", "", "eth1"},
        {"ib0", "", "eth0", "ib0"},
        {"eth7,ib0,eth1", "", "", "ib0"},
        {"eth", "", "ib0", "ib0"},
        {"10.77.1.0/24", "", "", "eth1"},
        {"10.77.1.77/24", "", "", "eth1"},
        {"10.0.0.0/8", "", "", "eth0"},
        {"10.77.2.0/24,192.168.0.5/32", "", "", "ib0"},
        {"10.77.1.0/31", "", "ib0", "ib0"},
        {"0.0.0.0/0", "", "eth0", "eth0"},
        {"0.0.0.0/0", "", "", "br0"},
        {"10.0.0.0/8", "", "eth1", "eth1"},
        {"lo", "", "eth0", "lo"},
        {"127.0.0.0/8", "", "eth0", "lo"},
        {"10.77.1.0/33", "", "ib0", "ib0"},
        {"10.77.1.0/", "", "ib0", "ib0"},
        {"10.77.1.0/24x", "", "ib0", "ib0"},
        {"10.77.1.0", "", "ib0", "ib0"},
        {"10.77/16", "", "ib0", "ib0"},
        {",,/,eth1", "", "ib0", "eth1"},
    };
    for (const auto& [include, exclude, routed, wanted] : listings) {
        const std::string found = preferred_interface({include, exclude}, routed, interfaces);
        expect_no_reason(found == wanted ? nullptr
                                         : keep(std::string(include) + " without " + exclude +
                                                " and by " + routed + ": \"" + found + '"'));
    }
}

// The devices that UCX finds on this machine have names. Every machine has a loopback.
void test_devices_of_this_machine(void**)
{
    bool has_loopback = false, are_named = true;
    for (const auto& device : network_devices()) {
        has_loopback = has_loopback || device.name == "lo";
        are_named = are_named && !device.name.empty() && !device.transport.empty();
    }
    assert_true(has_loopback);
    assert_true(are_named);
}

// ---- transports of large rails

// One queue pair for each peer is too many on a large rail. The members decide alike.
void test_transports_of_large_rails(void**)
{
    const auto settled = [](const char* transports, std::size_t members, bool all_may) {
        return settle_transports({"mlx5_0:1", transports}, members, all_may).transports;
    };
    assert_string_equal(settled("rc,dc", max_reliable_members, true).c_str(), "rc,dc");
    assert_string_equal(settled("rc,dc", max_reliable_members + 1, true).c_str(), "dc");
    assert_string_equal(settled("rc,dc", 1024, false).c_str(), "rc,dc");
    for (const char* others : {"rc", "tcp", "rc_mlx5,dc_mlx5", ""})
        assert_string_equal(settled(others, 1024, true).c_str(), others);
    const NetworkChoice dynamic{"mlx5_0:1", "dc"};
    assert_true(is_rdma(dynamic) && is_reliable_rdma(dynamic) && is_dynamic_rdma(dynamic));
    assert_false(may_be_dynamic(dynamic));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_nothing_left),
        cmocka_unit_test(test_tcp_is_switched_off),
        cmocka_unit_test(test_preferred_interface),
        cmocka_unit_test(test_devices_of_this_machine),
        cmocka_unit_test(test_transports_of_large_rails),
    };
    return hier::test::run_cases(argc, argv, "ucx_devices", tests);
}
