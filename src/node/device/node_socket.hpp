// SPDX-License-Identifier: BSD-3-Clause
// What processes of a node tell each other of device memory: what an application has mapped segment by
// segment, with the file descriptors by which the others map it, and what has been freed. A datagram
// socket of the process, in Linux's abstract namespace. Nothing blocks.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace hier {

class NodeSocket {
public:
    struct Address {
        std::uint64_t process;  // of no other process; 0: it has no socket
        std::uint64_t network;  // the namespace in which it has it
    };
    struct Entry {
        std::uint64_t base;  // in the process that maps it
        std::uint64_t length;
        std::uint64_t id;
    };
    enum class What : std::uint32_t {
        mapped,    // segments, with a descriptor for each
        unmapped,  // segments that are no more
        lost,      // what had been sent has not arrived, or is gone
        freed,     // whole allocations that are no more
    };
    static constexpr std::size_t most = 128;  // in one message; Linux sends 253 descriptors
    struct Message {
        std::uint64_t process;  // the sender
        What what;
        std::uint32_t count;
        std::int32_t owner;  // its process id
        std::int32_t reserved;
        std::array<Entry, most> entries;
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
        not_now,    // the other's queue is full
        to_nobody,  // the process is gone, or could never be reached
    };
    Sent try_send(const Address& to, What what, std::span<const Entry> entries,
                  std::span<const int> descriptors);
    bool send(const Address& to, What what, std::span<const Entry> entries,
              std::span<const int> descriptors)
    {
        return try_send(to, what, entries, descriptors) == Sent::yes;
    }
    // False: there is none. `descriptors`, which are the caller's, are as many as the entries, or
    // none: there was no room for them. Messages of other users are dropped, some at a time.
    bool receive(Message& message, std::vector<int>& descriptors);

private:
    NodeSocket();

    int socket_ = -1;  // open as long as the process
    Address address_{};
};

}  // namespace hier
