#include "transport/tcp_interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

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
        found.push_back({i->ifa_name, ntohl(address.sin_addr.s_addr)});
    }
    freeifaddrs(all);
    return found;
}

std::string first_listed(const std::string& list, std::span<const Interface> interfaces)
{
    std::istringstream entries(list);
    for (std::string entry; std::getline(entries, entry, ',');) {
        const auto found =
            std::find_if(interfaces.begin(), interfaces.end(), [&](const Interface& i) {
                return i.name == entry || is_in_network(i, entry);
            });
        if (found != interfaces.end()) return found->name;
    }
    return "";
}

std::string default_route_interface()
{
    std::ifstream routes("/proc/net/route");
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
