#include "transport/piece_socket.hpp"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace hier {
namespace {

constexpr std::size_t header_bytes = offsetof(PieceSocket::Message, entries);
constexpr std::size_t descriptor_bytes = CMSG_SPACE(PieceSocket::most * sizeof(int));

void close_all(std::vector<int>& descriptors)
{
    for (const int descriptor : descriptors) close(descriptor);
    descriptors.clear();
}

// What came along: descriptors, and whether one of this user has sent it.
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

PieceSocket& PieceSocket::instance()
{
    static PieceSocket socket;
    return socket;
}

// The kernel chooses the name: a zero and five digits.
PieceSocket::PieceSocket()
{
    socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int yes = 1;
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    socklen_t length = sizeof name;
    const auto any = reinterpret_cast<sockaddr*>(&name);
    struct stat network {};
    std::uint64_t process = 0;
    if (socket_ < 0 || setsockopt(socket_, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) != 0 ||
        bind(socket_, any, sizeof name.sun_family) != 0 || getsockname(socket_, any, &length) != 0)
        return;
    const std::size_t bytes = length - offsetof(sockaddr_un, sun_path);
    if (bytes > address_.name.size() - 1 ||
        getrandom(&process, sizeof process, 0) != sizeof process ||
        stat("/proc/self/ns/net", &network) != 0)
        return;
    address_.network = network.st_ino;
    address_.name[0] = static_cast<char>(bytes);
    std::memcpy(&address_.name[1], name.sun_path, bytes);
    address_.process = process | 1;
}

bool PieceSocket::send(const Address& to, What what, std::span<const Entry> entries,
                       std::span<const int> descriptors)
{
    if (to.process == 0 || to.network != address_.network) return false;
    Message message{address_.process, what, static_cast<std::uint32_t>(entries.size()), {}};
    std::memcpy(message.entries.data(), entries.data(), entries.size_bytes());
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const auto bytes = static_cast<std::size_t>(to.name[0]);
    std::memcpy(name.sun_path, &to.name[1], bytes);
    iovec part{&message, header_bytes + entries.size_bytes()};
    alignas(cmsghdr) std::array<std::byte, descriptor_bytes> control{};
    msghdr header{};
    header.msg_name = &name;
    header.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes);
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
    return sendmsg(socket_, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(part.iov_len);
}

bool PieceSocket::receive(Message& message, std::vector<int>& descriptors)
{
    descriptors.clear();
    while (address_.process != 0) {
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
            static_cast<std::size_t>(received) >= header_bytes && message.count <= most &&
            static_cast<std::size_t>(received) == header_bytes + message.count * sizeof(Entry);
        if (!is_ours || !is_whole || descriptors.size() != message.count) close_all(descriptors);
        if (is_ours && is_whole) return true;
    }
    return false;
}

}  // namespace hier
