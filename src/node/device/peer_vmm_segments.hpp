// SPDX-License-Identifier: BSD-3-Clause
// VMM segments of other processes of this node, mapped here. A mapping is kept from call to call
// until its owner says that the segment is gone.
//
//   a peer's addresses   ... | 64 GiB window k                        | ...
//                            [segment][segment]      [segment]
//   here                     the same segments, at the same distances
//
// Because the distances are equal, a buffer is one range here too. Windows overlap by half. So a
// buffer that is no longer than half a window lies in one.
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

    // Does a window hold a buffer whose first and last segments are these?
    static bool fit(const NodeSocket::Entry& first, const NodeSocket::Entry& last);

    struct Window;
    struct Range {
        std::uint64_t address;  // in the peer
        std::uint64_t length;
        std::uint64_t digest;  // VmmDigest of its segments
    };
    // Says where the range is here, for copies by `device`, until release(). If some segment is
    // missing, this is an error, and the peer is told.
    Status acquire(const NodeSocket::Address& peer, const Range& range, int device, Window*& window,
                   std::byte*& at);
    void release(Window* window);
    // Handles the messages of peers. `device`: any device that this process uses; -1: none.
    void listen(int device);
    // Closes all windows that are not in use, and releases all segments.
    void clear();
    std::size_t size();  // mapped segments

    static constexpr std::uint64_t window_bytes = std::uint64_t{64} << 30;
    static constexpr std::size_t max_windows = 64;

    struct Window {
        std::uint64_t process;
        std::uint64_t start;  // in the peer
        int device;
        std::byte* base;  // here
        int users;
        bool is_broken;                                 // a segment could not be unmapped
        std::map<std::uint64_t, std::uint64_t> mapped;  // lengths of segments, by base in the peer
    };

private:
    struct Known {
        std::uint64_t length;
        std::uint64_t id;
        gpu::VmmHandle handle;
    };
    using Segments = std::map<std::uint64_t, Known>;  // by base
    using Iterator = std::list<Window>::iterator;

    // nullptr: not all segments of the range can be mapped.
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
    std::list<Window> windows_;  // the last one used is first
};

}  // namespace hier
