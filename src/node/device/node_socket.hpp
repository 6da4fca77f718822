// SPDX-License-Identifier: BSD-3-Clause
// Messages between the processes of a node about their device memory. A process tells the others
// which VMM segments it has mapped, with a file descriptor for each, and which memory has been
// freed.
//
// Every process has a datagram socket in Linux's abstract namespace. Nothing blocks.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace hier {

class NodeSocket {
public:
    struct Address {
        std::uint64_t process;  // a number of this process alone; 0: it has no socket
        std::uint64_t network;  // the network namespace of the socket
    };
    struct Entry {
        std::uint64_t base;  // in the owner
        std::uint64_t length;
        std::uint64_t id;
    };
    enum class What : std::uint32_t {
        mapped,    // segments, with a descriptor for each
        unmapped,  // segments that are gone
        lost,      // the sender lacks a message that it should have got
        freed,     // whole allocations that are gone
    };
    static constexpr std::size_t max_entries = 128;  // in one message; Linux sends 253 descriptors
    struct Message {
        std::uint64_t process;  // the sender
        What what;
        std::uint32_t count;
        std::int32_t owner;  // the sender's process id
        std::int32_t reserved;
        std::array<Entry, max_entries> entries;
    };

    static NodeSocket& instance();
    NodeSocket(const NodeSocket&) = delete;
    NodeSocket& operator=(const NodeSocket&) = delete;

    const Address& address() const { return address_; }
    bool reaches(const Address& to) const
    {
        return address_.process != 0 && to.process != 0 && to.network == address_.network;
    }
    enum class Sent {
        yes,
        not_now,    // the other socket is full
        to_nobody,  // the process is gone, or cannot be reached at all
    };
    Sent try_send(const Address& to, What what, std::span<const Entry> entries,
                  std::span<const int> descriptors);
    bool send(const Address& to, What what, std::span<const Entry> entries,
              std::span<const int> descriptors)
    {
        return try_send(to, what, entries, descriptors) == Sent::yes;
    }
    // False: there is no message. The caller owns `descriptors`. There is one for each entry, or
    // none if this process could not take them. Messages of other users are dropped, some in each
    // call.
    bool receive(Message& message, std::vector<int>& descriptors);

private:
    NodeSocket();

    int socket_ = -1;  // stays open as long as the process lives
    Address address_{};
};

}  // namespace hier
