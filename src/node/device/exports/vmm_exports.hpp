// SPDX-License-Identifier: BSD-3-Clause
// The VMM segments of this process that peers may map, with a file descriptor for each that some
// peer still has to take.
//
//   offered: descriptor open, in the table  --all peers that wait have it-->  descriptor closed
//            ^                                                                     |
//            +------------------- another peer, or a peer that has lost it --------+
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "hier/gpu.hpp"
#include "hier/transport.hpp"
#include "node/device/imports/peer_table.hpp"

namespace hier {

class VmmExports {
public:
    static VmmExports& instance();

    // Offers all peers the segments that the region lies in, unless they have them. False: not all
    // segments are offered. Later calls go on.
    bool share(const Region& region, std::span<PeerTable* const> peers, std::uint64_t& digest);
    // Looks for segments that the application has unmapped, and takes them out of the table, so
    // that the memory comes free. Closes descriptors that nobody waits for.
    void look_after();
    // Closes all descriptors.
    void clear();
    std::size_t open_descriptors();

    // The application needs descriptors too, and often has 1024 in all.
    static constexpr std::size_t max_open = 64;

private:
    struct Export {
        ExportEntry entry;
        int device;
        bool is_refused = false;              // the runtime cannot export it
        std::uint64_t offered = 0;            // shares_ when it was last asked for
        std::uint64_t version = 0;            // of the table, since the descriptor is open
        std::set<std::uint64_t> owners = {};  // processes that have it
        std::map<std::uint64_t, const PeerTable*> waiting = {};  // the descriptor is open for these
    };
    using Exports = std::map<std::uint64_t, Export>;  // by base
    // The table changes once for many exports.
    struct Change {
        std::vector<ExportEntry> gone, put;
        std::vector<int> descriptors;  // to be closed afterwards
    };

    Export& find(const gpu::VmmSegment& segment, int device, Change& change);
    bool open(Export& known, Change& change);
    bool make_room(Change& change);
    static void note_owners(Export& known);
    void close(Export& known, Change& change);
    void close_unneeded(Change& change);
    bool may_be_told(const PeerTable& peer);
    bool apply(Change& change, std::span<Export* const> opened);

    struct Losses {
        std::uint64_t told = 0;  // of them we know
        int count = 0;
        std::uint64_t last = 0;  // shares_ at the last loss
    };

    static constexpr int max_losses = 3;
    static constexpr std::uint64_t pardoned_after = 1000;  // calls of share()

    std::mutex mutex_;
    Exports exports_;
    std::set<std::uint64_t> open_;  // bases of those with a descriptor
    std::uint64_t looked_at_ = 0;
    std::uint64_t shares_ = 0;
    std::map<std::uint64_t, Losses> losses_;  // by process
    std::vector<gpu::VmmSegment> segments_;   // of the region in share()
};

}  // namespace hier
