// SPDX-License-Identifier: BSD-3-Clause
#include "net/devices/network_choice.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "topology/nearness.hpp"

namespace hier {

bool writes_by_rdma(const NetworkDevice& device)
{
    return device.transport.starts_with("rc_") || device.transport.starts_with("dc_");
}

namespace {

bool is_tcp(const NetworkDevice& device) { return device.transport == "tcp"; }

// Each once, in an order that is the same on equal hosts.
std::vector<NetworkDevice> select(const std::vector<NetworkDevice>& devices,
                                  bool (*wanted)(const NetworkDevice&))
{
    std::vector<NetworkDevice> out;
    std::copy_if(devices.begin(), devices.end(), std::back_inserter(out), wanted);
    const auto key = [](const NetworkDevice& d) { return std::pair(d.position.pci, d.name); };
    std::sort(out.begin(), out.end(),
              [&](const auto& a, const auto& b) { return key(a) < key(b); });
    const auto same = [](const auto& a, const auto& b) { return a.name == b.name; };
    out.erase(std::unique(out.begin(), out.end(), same), out.end());
    return out;
}

bool is_listed(const std::string& list, const std::string& name)
{
    return (',' + list + ',').find(',' + name + ',') != std::string::npos;
}

// RDMA devices have ports ("mlx5_0:1"), which need not be named.
bool is_named(const std::string& list, const NetworkDevice& device)
{
    return is_listed(list, device.name) ||
           is_listed(list, device.name.substr(0, device.name.find(':')));
}

// In the list's order, as often as it names them.
std::vector<NetworkDevice> in_order_of(const std::string& list,
                                       const std::vector<NetworkDevice>& devices)
{
    std::vector<NetworkDevice> out;
    std::istringstream names(list);
    for (std::string name; std::getline(names, name, ',');) {
        std::copy_if(devices.begin(), devices.end(), std::back_inserter(out),
                     [&](const auto& d) { return d.name == name; });
    }
    return out;
}

// 0: not known, as of virtual ones, whose speed the kernel gives as -1.
double rate_of(const NetworkDevice& device)
{
    return std::max(0.0, std::strtod(device.link.c_str(), nullptr));
}

void keep_fastest(std::vector<NetworkDevice>& devices)
{
    double fastest = 0;
    for (const auto& d : devices) fastest = std::max(fastest, rate_of(d));
    std::erase_if(devices, [&](const auto& d) { return rate_of(d) < fastest; });
}

// Ports of a storage network, or of the host's own Ethernet, do RDMA as well. A rank that is near to such
// a port would not reach the ranks that take the compute network. So all take the kind that moves most in
// all.
void keep_one_network(std::vector<NetworkDevice>& devices)
{
    const auto kind = [](const NetworkDevice& d) {
        return std::pair(d.link.find("InfiniBand") != std::string::npos, rate_of(d));
    };
    const auto weight = [&](const NetworkDevice& d) {
        const auto same = std::count_if(devices.begin(), devices.end(),
                                        [&](const auto& other) { return kind(other) == kind(d); });
        const auto [is_infiniband, rate] = kind(d);
        return std::tuple(static_cast<double>(same) * rate, is_infiniband, rate);
    };
    if (devices.empty()) return;
    const auto best =
        kind(*std::max_element(devices.begin(), devices.end(), [&](const auto& a, const auto& b) {
            return weight(a) < weight(b);
        }));
    std::erase_if(devices, [&](const auto& d) { return kind(d) != best; });
}

// The RDMA transports of a device. Only Mellanox has dc, and UCX warns of a name that it does not find.
std::string reliable_transports(const std::vector<NetworkDevice>& found, const std::string& name)
{
    const bool has_dc = std::any_of(found.begin(), found.end(), [&](const auto& d) {
        return d.name == name && d.transport.starts_with("dc_");
    });
    return has_dc ? "rc,dc" : "rc";
}

std::vector<NetworkChoice> choices_for(const std::vector<NetworkDevice>& devices,
                                       const std::string& transports, int max,
                                       std::span<const Position> ranks, int self)
{
    std::vector<Nic> nics;
    nics.reserve(devices.size());
    for (const auto& d : devices) nics.push_back({d.position, d.link});
    std::vector<NetworkChoice> choices;
    const auto nics_of = assign_nics(ranks, nics, max);
    for (const int taken : nics_of[static_cast<std::size_t>(self)]) {
        NetworkChoice choice{devices[static_cast<std::size_t>(taken)].name, transports};
        choice.connection =
            static_cast<int>(std::count_if(choices.begin(), choices.end(), [&](const auto& c) {
                return c.devices == choice.devices;
            }));
        choices.push_back(std::move(choice));
    }
    return choices;
}

}  // namespace

bool is_rdma(const NetworkChoice& choice)
{
    std::istringstream names(choice.transports);
    std::string name;
    bool all = !choice.transports.empty();
    while (std::getline(names, name, ','))
        all = all && (name == "rc" || name == "dc" || writes_by_rdma({name, ""}));
    return all;
}

bool is_tcp(const NetworkChoice& choice) { return choice.transports == "tcp"; }

bool is_reliable_rdma(const NetworkChoice& choice)
{
    return choice.transports == "rc" || may_be_dynamic(choice) || is_dynamic_rdma(choice);
}

bool is_dynamic_rdma(const NetworkChoice& choice) { return choice.transports == "dc"; }

bool may_be_dynamic(const NetworkChoice& choice) { return choice.transports == "rc,dc"; }

NetworkChoice settle_transports(NetworkChoice choice, std::size_t members, bool all_may)
{
    if (may_be_dynamic(choice) && all_may && members > max_reliable_members)
        choice.transports = "dc";
    return choice;
}

std::vector<NetworkChoice> choose_network(std::vector<NetworkDevice> found,
                                          NetworkSettings settings,
                                          const std::string& preferred_interface,
                                          std::span<const Position> ranks, int self)
{
    if (settings.devices.starts_with('^')) {
        const std::string excluded = settings.devices.substr(1);
        std::erase_if(found, [&](const auto& d) { return is_named(excluded, d); });
        if (found.empty()) throw SetupError('"' + settings.devices + "\" leaves no network device");
        settings.devices = "auto";
    }
    const bool any_device = settings.devices == "auto";
    const bool is_tcp_off = settings.transports == no_tcp;
    const bool any_transport = settings.transports == "auto" || is_tcp_off;
    NetworkChoice choice{any_device ? "" : settings.devices,
                         any_transport ? "" : settings.transports};

    auto rdma = select(found, writes_by_rdma);
    if (any_device) {
        keep_one_network(rdma);
    } else {
        std::erase_if(rdma, [&](const auto& d) { return !is_named(settings.devices, d); });
    }
    if (any_transport && !rdma.empty()) {
        auto choices = choices_for(rdma, "", settings.max_devices, ranks, self);
        for (auto& c : choices) c.transports = reliable_transports(found, c.devices);
        return choices;
    }
    if (is_tcp_off)
        throw SetupError("there is no RDMA device, and TCP is switched off "
                         "(coll_hier_net_transports, or UCX_TLS, is ^tcp)");
    if (any_transport) choice.transports = "tcp";
    if (choice.transports != "tcp") return {choice};
    auto tcp = select(found, is_tcp);
    if (!any_device) {
        auto listed = in_order_of(settings.devices, tcp);
        keep_fastest(listed);
        if (!listed.empty()) return choices_for(listed, "tcp", settings.max_devices, ranks, self);
    } else if (!tcp.empty()) {
        const bool is_there = std::any_of(
            tcp.begin(), tcp.end(), [&](const auto& d) { return d.name == preferred_interface; });
        if (tcp.size() > 1) std::erase_if(tcp, [](const auto& d) { return d.name == "lo"; });
        choice.devices = is_there ? preferred_interface : tcp.front().name;
    }
    return {choice};
}

}  // namespace hier
