// SPDX-License-Identifier: BSD-3-Clause
// VMM segments of other processes of this node, mapped here. A mapping is kept from call to call
// until the segment vanishes from its owner's table (peer_table.hpp).
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
#include "node/device/imports/peer_table.hpp"

namespace hier {

class PeerVmmSegments {
public:
    static PeerVmmSegments& instance();

    // Does a window hold a buffer whose first and last segments are these?
    static bool fit(const ExportEntry& first, const ExportEntry& last);

    struct Window;
    struct Range {
        std::uint64_t address;  // in the peer
        std::uint64_t length;
        std::uint64_t digest;  // VmmDigest of its segments
    };
    // Says where the range is here, for copies by `device`, until release(). If some segment is
    // missing, this is an error, and the owner is told.
    Status acquire(const PeerTable& owner, const Range& range, int device, Window*& window,
                   std::byte*& at);
    void release(Window* window);
    // Drops the segments of the owner that are not among the entries of its table, and takes and
    // imports those that are new, if `device` is not -1. False: the table is not in this version any
    // more, so a descriptor may have led to another file.
    bool take_in(const PeerTable& owner, std::span<const ExportEntry> entries,
                 std::uint64_t version, int device);
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
    // No two of them overlap.
    using Segments = std::map<std::uint64_t, Known>;  // by base
    using Iterator = std::list<Window>::iterator;

    // nullptr: not all segments of the range can be mapped.
    Window* map(std::uint64_t process, const Range& range, int device);
    static bool is_known(const Segments& segments, const ExportEntry& entry);
    void drop_missing(std::uint64_t process, std::span<const ExportEntry> entries);
    void drop(std::uint64_t process, const ExportEntry& entry);
    Window* find_window(std::uint64_t process, std::uint64_t start, int device);
    Iterator close(Iterator window);
    void make_room();

    std::mutex mutex_;
    std::map<std::uint64_t, Segments> processes_;
    std::list<Window> windows_;  // the last one used is first
};

}  // namespace hier
