// SPDX-License-Identifier: BSD-3-Clause
#include "net/devices/tcp_probe.hpp"

#include <ifaddrs.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace hier {
namespace {

sockaddr* generic(TcpProbe::Address& address) { return reinterpret_cast<sockaddr*>(&address); }

socklen_t length_of(const TcpProbe::Address& address)
{
    return address.sin6_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

// Means something to other hosts.
bool is_for_all(const sockaddr* address)
{
    return address->sa_family == AF_INET ||
           !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

// IPv4 where there is one, as UCX.
TcpProbe::Address address_of(const std::string& interface)
{
    TcpProbe::Address found{};
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return found;
    for (const int family : {AF_INET, AF_INET6}) {
        for (const ifaddrs* i = all; i != nullptr && found.sin6_family == AF_UNSPEC;
             i = i->ifa_next) {
            if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != family ||
                interface != i->ifa_name || !is_for_all(i->ifa_addr))
                continue;
            std::memcpy(&found, i->ifa_addr,
                        family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
        }
    }
    freeifaddrs(all);
    return found;
}

}  // namespace

TcpProbe::TcpProbe(const std::string& interface)
{
    if (std::getenv("UCX_TCP_PORT_RANGE") != nullptr) return;
    Address address = address_of(interface);
    if (address.sin6_family == AF_UNSPEC) return;
    listener_ = socket(address.sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = length_of(address);
    if (listener_ >= 0 && bind(listener_, generic(address), length) == 0 &&
        listen(listener_, SOMAXCONN) == 0 && getsockname(listener_, generic(address), &length) == 0)
        address_ = address;
}

TcpProbe::~TcpProbe()
{
    if (listener_ >= 0) close(listener_);
}

std::string TcpProbe::reach(const Address& address, std::chrono::milliseconds bound)
{
    if (address.sin6_family == AF_UNSPEC) return "";
    const int connection =
        socket(address.sin6_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connection < 0) return std::strerror(errno);
    Address to = address;
    int cause = connect(connection, generic(to), length_of(to)) == 0 ? 0 : errno;
    if (cause == EINPROGRESS) {
        const auto end = std::chrono::steady_clock::now() + bound;
        pollfd waited{connection, POLLOUT, 0};
        int ready = -1;
        do {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                end - std::chrono::steady_clock::now());
            ready = poll(&waited, 1, std::max(0, static_cast<int>(left.count())));
        } while (ready < 0 && errno == EINTR);
        socklen_t length = sizeof cause;
        if (ready <= 0 || getsockopt(connection, SOL_SOCKET, SO_ERROR, &cause, &length) != 0)
            cause = ETIMEDOUT;
    }
    close(connection);
    return cause == 0 ? "" : std::strerror(cause);
}

}  // namespace hier
