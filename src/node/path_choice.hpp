// SPDX-License-Identifier: BSD-3-Clause
// Chooses the path of the puts to a peer in a call. If ranks use GPUs, the memory decides:
//
//                         into host memory           into device memory
//   from host memory      CMA or cells               copy engine, else cells
//   from device memory    cells                      copy engine, else cells
//
// The receiver says how its buffer may be written (NodeOffer::path), and the sender decides. No two
// ranks have to agree on anything.
//
// - Memory that the application maps is shared segment by segment (peer_vmm_segments.hpp).
// - Copy engines reach memory that cannot be exported through device cells (device_cells.hpp).
// - Cells of shared memory (shm_cells.hpp) work for every pair. They serve ranks that have used no
//   device yet, and memory that cannot be mapped.
//
// Between CMA and cells the first put to a peer decides for the rest of the call, so that puts are
// counted in their order. Large puts go by CMA, with one copy. Small puts go through cells, without
// a system call. The table has the median of a call in us, on one node of Xeons with 8 cells of 64
// KiB. Its columns are bytes a rank.
//
//                                         4 KiB   16 KiB   64 KiB   256 KiB   1 MiB
//   8 ranks on cores of their own, cells     10       19       80       472    1608
//                                  CMA       16       32       82       305    1193
//   4 ranks on 2 cores,            cells     12       17       41       112     690
//                                  CMA       24       32       60       156     719
//   8 ranks on 2 cores,            cells     27       40       86       334    3228
//                                  CMA      118      119      214       819    5057
//
// Two ranks on cores of their own (another machine, 16 cores): 2.1, 3.0 and 4.4 us for 4, 8 and 16 KiB
// through cells, 2.0, 2.4 and 3.6 us by CMA.
//
// If ranks share cores, cells win: the rank that copies the bytes out of a cell is the rank that needs
// them next. On 2 cores of an AMD EPYC, medians of three runs in ms, cells / CMA:
//
//                     64 KiB          1 MiB          4 MiB          16 MiB
//   3 ranks    0.042 / 0.043   0.49 / 0.68    3.4 / 4.2     14.0 / 16.7
//   4 ranks    0.043 / 0.088   0.75 / 1.47    4.4 / 6.4     16.7 / 26.7
//   8 ranks     0.18 / 0.26     3.8 / 6.3    16.5 / 25.1    63.2 / 96.7
//
// One run in four there is some 2.5 times slower by cells, and nobody knows why: 10.4 ms for 4 MiB of 4 ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "node/node_segment.hpp"

namespace hier {

enum class PutPath : std::uint8_t {
    unknown,  // the peer has not said how it may be written
    open,     // CMA, if it reaches the buffers
    cma,
    cells,
    engines,
    device_cells,
};

class PathChoice {
public:
    // If the first put to a peer has at most this many bytes, puts go through cells.
    static constexpr std::size_t max_through_cells = 16 << 10;
    static constexpr std::size_t max_of_two = 4 << 10;  // if the node has two ranks
    // If ranks share cores: no limit.
    static constexpr std::size_t max_on_shared_cores = std::numeric_limits<std::size_t>::max();

    // For a rank that is alone on its node.
    PathChoice() = default;
    PathChoice(int ranks, bool has_cma, bool has_cells, bool has_devices,
               std::size_t max_bytes_through_cells);

    // If CMA reaches the buffers.
    std::size_t max_bytes_through_cells() const { return max_bytes_; }
    void begin();
    // `peer` has said how its buffer may be written. Only if ranks use GPUs.
    void know(int peer, WritePath path);
    bool is_known(int peer) const { return at(peer) != PutPath::unknown; }
    // open: the caller tries CMA and then calls report().
    PutPath choose(int peer, std::size_t bytes, bool is_from_device)
    {
        PutPath& path = at(peer);
        const bool is_by_cpu = path == PutPath::open || path == PutPath::cma;
        if (is_by_cpu && is_from_device) path = PutPath::cells;
        if (path == PutPath::open && bytes <= max_bytes_) path = PutPath::cells;
        return path;
    }
    void report(int peer, bool is_reached_by_cma)
    {
        at(peer) = is_reached_by_cma ? PutPath::cma : PutPath::cells;
    }

private:
    PutPath& at(int peer) { return paths_[static_cast<std::size_t>(peer)]; }
    PutPath at(int peer) const { return paths_[static_cast<std::size_t>(peer)]; }

    PutPath by_cpu_ = PutPath::cells;    // to a peer whose buffer the CPU may write
    PutPath at_first_ = PutPath::cells;  // to every peer, when a call begins
    std::size_t max_bytes_ = 0;
    std::vector<PutPath> paths_;  // by peer, in this call
};

}  // namespace hier
