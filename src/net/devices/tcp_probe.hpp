// SPDX-License-Identifier: BSD-3-Clause
// Does a TCP network lead anywhere? UCX waits for a connection as long as the kernel tries, which is 127 s
// where nobody answers. So hier tries one first, with a bound.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <string>

namespace hier {

class TcpProbe {
public:
    // Others connect to this address. All zero: there is none, and nothing is known of this network.
    using Address = sockaddr_in6;
    static_assert(sizeof(sockaddr_in6) >= sizeof(sockaddr_in));

    // Listens on an interface of this name. Not where the interface has no address, or where
    // UCX_TCP_PORT_RANGE asks for ports of its own.
    explicit TcpProbe(const std::string& interface);
    ~TcpProbe();
    TcpProbe(const TcpProbe&) = delete;
    TcpProbe& operator=(const TcpProbe&) = delete;

    const Address& address() const { return address_; }
    // Connects to the probe of another process, which listens until all have connected. "", or the cause of
    // the failure.
    static std::string reach(const Address& address, std::chrono::milliseconds bound);

private:
    int listener_ = -1;
    Address address_{};
};

}  // namespace hier
