// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/node_socket.hpp"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace hier {
namespace {

constexpr std::size_t header_bytes = offsetof(NodeSocket::Message, entries);
constexpr std::size_t descriptor_bytes = CMSG_SPACE(NodeSocket::max_entries * sizeof(int));

// The name is in the abstract namespace, which a leading zero byte means.
socklen_t name_socket(std::uint64_t process, sockaddr_un& name)
{
    name = {};
    name.sun_family = AF_UNIX;
    const int length = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1,
                                     "coll_hier.%016llx", static_cast<unsigned long long>(process));
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  static_cast<std::size_t>(length));
}

void close_all(std::vector<int>& descriptors)
{
    for (const int descriptor : descriptors) close(descriptor);
    descriptors.clear();
}

// Takes the descriptors out of a message. True: a process of this user has sent the message.
bool unpack(msghdr& header, std::vector<int>& descriptors)
{
    bool is_ours = false;
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level != SOL_SOCKET) continue;
        if (c->cmsg_type == SCM_RIGHTS) {
            descriptors.resize((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
            std::memcpy(descriptors.data(), CMSG_DATA(c), descriptors.size() * sizeof(int));
        } else if (c->cmsg_type == SCM_CREDENTIALS) {
            ucred sender{};
            std::memcpy(&sender, CMSG_DATA(c), sizeof sender);
            is_ours = sender.uid == getuid();
        }
    }
    return is_ours;
}

}  // namespace

NodeSocket& NodeSocket::instance()
{
    static NodeSocket socket;
    return socket;
}

NodeSocket::NodeSocket()
{
    const int yes = 1;
    struct stat network {};
    std::uint64_t process = 0;
    socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || getrandom(&process, sizeof process, 0) != sizeof process ||
        stat("/proc/self/ns/net", &network) != 0)
        return;
    process |= 1;
    sockaddr_un name;
    const socklen_t length = name_socket(process, name);
    if (setsockopt(socket_, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0 ||
        bind(socket_, reinterpret_cast<sockaddr*>(&name), length) != 0)
        return;
    address_ = {process, network.st_ino};
}

NodeSocket::Sent NodeSocket::try_send(const Address& to, What what, std::span<const Entry> entries,
                                      std::span<const int> descriptors)
{
    if (!reaches(to)) return Sent::to_nobody;
    Message message{address_.process, what, static_cast<std::uint32_t>(entries.size()),
                    getpid(),         0,    {}};
    std::copy(entries.begin(), entries.end(), message.entries.begin());
    sockaddr_un name;
    const socklen_t length = name_socket(to.process, name);
    iovec part{&message, header_bytes + entries.size_bytes()};
    alignas(cmsghdr) std::array<std::byte, descriptor_bytes> control{};
    msghdr header{};
    header.msg_name = &name;
    header.msg_namelen = length;
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (!descriptors.empty()) {
        header.msg_control = control.data();
        header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* const c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size_bytes());
    }
    if (sendmsg(socket_, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(part.iov_len))
        return Sent::yes;
    return errno == ECONNREFUSED ? Sent::to_nobody : Sent::not_now;
}

bool NodeSocket::receive(Message& message, std::vector<int>& descriptors)
{
    descriptors.clear();
    constexpr int some = 100;
    for (int i = 0; i < some && address_.process != 0; i++) {
        iovec part{&message, sizeof message};
        alignas(cmsghdr) std::array<std::byte, descriptor_bytes + CMSG_SPACE(sizeof(ucred))>
            control;
        msghdr header{};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        const ssize_t received = recvmsg(socket_, &header, MSG_CMSG_CLOEXEC);
        if (received < 0) return false;
        const bool is_ours = unpack(header, descriptors);
        const bool is_whole =
            static_cast<std::size_t>(received) >= header_bytes && message.count <= max_entries &&
            static_cast<std::size_t>(received) == header_bytes + message.count * sizeof(Entry);
        if (!is_ours || !is_whole || descriptors.size() != message.count) close_all(descriptors);
        if (is_ours && is_whole) return true;
    }
    return false;
}

}  // namespace hier
