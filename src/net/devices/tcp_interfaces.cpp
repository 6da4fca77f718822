// SPDX-License-Identifier: BSD-3-Clause
#include "net/devices/tcp_interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

namespace hier {
namespace {

bool is_in_network(const Interface& interface, const std::string& network)
{
    const std::size_t slash = network.find('/');
    in_addr address{};
    if (slash == std::string::npos ||
        inet_pton(AF_INET, network.substr(0, slash).c_str(), &address) != 1)
        return false;
    unsigned bits = 0;
    const char* const end = network.data() + network.size();
    const auto [rest, error] = std::from_chars(network.data() + slash + 1, end, bits);
    if (error != std::errc{} || rest != end || bits > 32) return false;
    const std::uint32_t mask = bits == 0 ? 0 : ~std::uint32_t{0} << (32 - bits);
    return ((interface.address ^ ntohl(address.s_addr)) & mask) == 0;
}

bool is_meant(const Interface& interface, const std::string& entry)
{
    return interface.name == entry || is_in_network(interface, entry);
}

std::vector<std::string> entries_of(const std::string& list)
{
    std::vector<std::string> entries;
    std::istringstream in(list);
    for (std::string entry; std::getline(in, entry, ',');) entries.push_back(entry);
    return entries;
}

bool is_listed(const Interface& interface, const std::vector<std::string>& entries)
{
    return std::any_of(entries.begin(), entries.end(),
                       [&](const std::string& entry) { return is_meant(interface, entry); });
}

}  // namespace

std::vector<Interface> ip_interfaces()
{
    std::vector<Interface> found;
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return found;
    for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
        if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
        sockaddr_in address;
        std::memcpy(&address, i->ifa_addr, sizeof address);
        const std::string device = std::string("/sys/class/net/") + i->ifa_name + "/device";
        found.push_back(
            {i->ifa_name, ntohl(address.sin_addr.s_addr), access(device.c_str(), F_OK) == 0});
    }
    freeifaddrs(all);
    return found;
}

std::string preferred_interface(const InterfaceLists& lists, const std::string& routed,
                                std::span<const Interface> interfaces)
{
    for (const std::string& entry : entries_of(lists.include)) {
        const Interface* found = nullptr;
        for (const Interface& each : interfaces) {
            if (!is_meant(each, entry)) continue;
            if (each.name == routed) return routed;
            if (found == nullptr || found->name == "lo") found = &each;
        }
        if (found != nullptr) return found->name;
    }
    // By any of its addresses.
    const auto excluded = entries_of(lists.exclude);
    const auto is_excluded = [&](const std::string& name) {
        return std::any_of(interfaces.begin(), interfaces.end(), [&](const Interface& each) {
            return each.name == name && is_listed(each, excluded);
        });
    };
    const Interface* best = nullptr;
    for (const Interface& each : interfaces) {
        if (is_excluded(each.name)) continue;
        if (each.name == routed) return routed;
        const bool is_better = best == nullptr || (each.has_device && !best->has_device);
        if (each.name != "lo" && is_better) best = &each;
    }
    return best == nullptr ? "" : best->name;
}

std::string default_route_interface()
{
    std::ifstream routes("/proc/net/route");
    return interface_of(routes);
}

std::string interface_of(std::istream& routes)
{
    std::string line;
    std::getline(routes, line);  // titles
    while (std::getline(routes, line)) {
        std::istringstream fields(line);
        std::string interface, destination;
        fields >> interface >> destination;
        if (destination == "00000000") return interface;
    }
    return "";
}

}  // namespace hier
