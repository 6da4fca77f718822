// SPDX-License-Identifier: BSD-3-Clause
// Does a TCP network lead anywhere? UCX waits for each of its connections as long as the kernel tries,
// 127 s where nobody answers; so one is tried first, with a bound.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <string>

namespace hier {

class TcpProbe {
public:
    // What others connect to; all zero: nothing, and then nothing is to be said of this network.
    using Address = sockaddr_in6;
    static_assert(sizeof(sockaddr_in6) >= sizeof(sockaddr_in));

    // Listens on an interface of this name. Nothing is tried where it has no address, or where
    // UCX_TCP_PORT_RANGE asks for ports of its own.
    explicit TcpProbe(const std::string& interface);
    ~TcpProbe();
    TcpProbe(const TcpProbe&) = delete;
    TcpProbe& operator=(const TcpProbe&) = delete;

    const Address& address() const { return address_; }
    // Connects to another process's, which listens until all have. "", or what went wrong.
    static std::string reach(const Address& address, std::chrono::milliseconds bound);

private:
    int listener_ = -1;
    Address address_{};
};

}  // namespace hier
