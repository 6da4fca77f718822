// SPDX-License-Identifier: BSD-3-Clause
// Lists of network devices, transports and interfaces that a user writes, and the kernel's table of
// routes. The input has them in a row, with a zero byte after each.
#include <sstream>

#include "base/error.hpp"
#include "net/devices/network_constraints.hpp"
#include "net/devices/tcp_interfaces.hpp"
#include "test/fuzz/target.hpp"

namespace hier::fuzz {
namespace {

void choose(NetworkSettings settings, const std::string& interface)
{
    const std::vector<NetworkDevice> found{{"tcp", "eth0", {}, "1000"},
                                           {"tcp", "lo", {}, ""},
                                           {"tcp", "ib0", {}, "-1"},
                                           {"rc_mlx5", "mlx5_0:1", {}, "400 InfiniBand"},
                                           {"dc_mlx5", "mlx5_0:1", {}, "400 InfiniBand"},
                                           {"rc_verbs", "mlx5_1:1", {}, "x"}};
    const std::vector<Position> ranks(3);
    try {
        const auto choices = choose_network(found, settings, interface, ranks, 1);
        require(!choices.empty(), "there is a choice, or an error");
        for (const NetworkChoice& choice : choices) (void)is_rdma(choice);
    } catch (const SetupError&) {  // a list that leaves nothing
    }
}

void run(Bytes bytes)
{
    Input input(bytes);
    const std::string devices = input.word(), transports = input.word();
    const std::string of_ucx = input.word(), tls = input.word();
    const std::string include = input.word(), exclude = input.word();
    std::istringstream routes(input.text());
    const std::vector<Interface> interfaces{
        {"lo", 0x7f000001}, {"eth0", 0x0a010001, true}, {"ib0", 0xc0a80001}};
    const std::string routed = interface_of(routes);
    const std::string interface = preferred_interface({include, exclude}, routed, interfaces);
    require(interface.empty() ||
                std::any_of(interfaces.begin(), interfaces.end(),
                            [&](const Interface& i) { return i.name == interface; }),
            "an interface that is there, or none");
    const NetworkSettings settings = with_variables_of_ucx({devices, transports, 2}, of_ucx.c_str(),
                                                           tls.empty() ? nullptr : tls.c_str());
    choose(settings, interface);
}

std::vector<std::string> seeds()
{
    const auto words = [](const std::vector<std::string>& all) {
        std::string text;
        for (const std::string& word : all) text += word + '\0';
        return text;
    };
    return {words({"auto", "auto", "mlx5_[0-3]:1,eth0", "^tcp", "10.1.0.0/16,eth0", "lo"}) +
                "Iface\tDestination\neth0\t00000000\t0A010001\n",
            words({"^mlx5_0", "^tcp", "all", "rc,tcp", "0.0.0.0/0", "eth0,127.0.0.1/8"}),
            words({"eth0,eth0", "tcp", "", "", "", "10.1.0.1/33"})};
}

}  // namespace

const Target networks{"networks", run, seeds};

}  // namespace hier::fuzz
