// SPDX-License-Identifier: BSD-3-Clause
// Device memory of other processes of this node that their applications have mapped segment by segment,
// mapped here: kept from call to call, until they say that it is no more.
//
//   a peer's addresses   ... | 64 GiB window k                        | ...
//                            [segment][segment]      [segment]
//   here                     the same, at the same distances: what is in one segment there is in one here
//
// Windows overlap by half, so that whatever is no longer than half a window lies in one.
#pragma once

#include <list>
#include <map>
#include <mutex>

#include "hier/gpu.hpp"
#include "hier/status.hpp"
#include "node/device/node_socket.hpp"

namespace hier {

class PeerVmmSegments {
public:
    static PeerVmmSegments& instance();

    // Is there a window for what begins and ends with these?
    static bool fit(const NodeSocket::Entry& first, const NodeSocket::Entry& last);

    struct Window;
    struct Range {
        std::uint64_t address;  // in the peer
        std::uint64_t length;
        std::uint64_t digest;  // VmmDigest, of its segments
    };
    // Where the range is here, for copies by `device`, until release(). Not all of it is there:
    // then the peer is told.
    Status acquire(const NodeSocket::Address& peer, const Range& range, int device, Window*& window,
                   std::byte*& at);
    void release(Window* window);
    // Takes in what peers have said; `device`: any that this process uses, -1: none.
    void listen(int device);
    // Closes all that is not in use.
    void clear();
    std::size_t size();  // segments that are mapped

    static constexpr std::uint64_t window_bytes = std::uint64_t{64} << 30;
    static constexpr std::size_t max_windows = 64;

    struct Window {
        std::uint64_t process;
        std::uint64_t start;  // in the peer
        int device;
        std::byte* base;  // here
        int users;
        bool is_broken;                                 // something could not be unmapped
        std::map<std::uint64_t, std::uint64_t> mapped;  // lengths, by base in the peer
    };

private:
    struct Known {
        std::uint64_t length;
        std::uint64_t id;
        gpu::VmmHandle handle;
    };
    using Segments = std::map<std::uint64_t, Known>;  // by base
    using Iterator = std::list<Window>::iterator;

    // nullptr: not all can be.
    Window* map(std::uint64_t process, const Range& range, int device);
    void take_in(int device);
    void take_in(const NodeSocket::Message& message, std::span<const int> descriptors, int device);
    static bool is_known(const Segments& segments, const NodeSocket::Entry& entry);
    static void import(Segments& segments, const NodeSocket::Entry& entry, int descriptor,
                       int device);
    void drop(std::uint64_t process, const NodeSocket::Entry& entry);
    Window* find_window(std::uint64_t process, std::uint64_t start, int device);
    Iterator close(Iterator window);
    void close_oldest();

    std::mutex mutex_;
    std::map<std::uint64_t, Segments> processes_;
    std::list<Window> windows_;  // the one used last is first
};

}  // namespace hier
