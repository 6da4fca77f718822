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
// counted in their order. CMA copies once. But it writes into lines that the peer's core has in its
// cache if it has read the last result, and the peer fetches them again to read this one. Out of a cell
// a peer copies into its own cache. A fragment of a block goes into a cell once, for all peers.
//
// Medians of MPI_Allgather in us on 16 cores of Xeons, a core for each rank, the better of two runs.
// Left: no rank touches its buffers between calls, as in osu_allgather. Right: it writes its block before
// and reads the result behind the call, as applications do; the time includes the reading.
//
//                        64 KiB       128 KiB      256 KiB       1 MiB          4 MiB
//    3 ranks, CMA       16 /  36     28 /  66     49 / 125     317 /  449    1306 /  1824
//           cells       24 /  27     35 /  41     66 /  83     385 /  476    1630 /  2296
//    4 ranks, CMA       23 /  54     46 / 108     76 / 213     441 /  650    1780 /  2499
//           cells       28 /  37     44 /  58     96 / 114     489 /  680    2071 /  2750
//    8 ranks, CMA       70 / 155    147 / 288    300 / 495    1164 / 1634    7551 / 10355
//           cells       50 /  61    112 / 134    265 / 340    1239 / 1471    5302 /  7939
//   16 ranks, CMA      198 / 360    376 / 578    658 / 953    3858 / 4908   19195 / 28438
//           cells      152 / 190    375 / 518   723 / 1026    3340 / 3920   16249 / 24297
//
// So eight ranks take cells, and fewer take them for results of up to 1 MiB. Two ranks of a node among
// several take CMA above 4 KiB: 2.1, 3.0 and 4.4 us for 4, 8 and 16 KiB through cells, 2.0, 2.4 and 3.6 us
// by CMA (16 cores, buffers untouched).
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

// Puts go through cells if the first put to the peer has at most so many bytes, or if the result has.
struct CellLimits {
    static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

    std::size_t put = 0;
    std::size_t result = 0;
};

class PathChoice {
public:
    static constexpr std::size_t max_through_cells = 16 << 10;
    static constexpr std::size_t max_of_two = 4 << 10;  // if the node has two ranks
    static constexpr std::size_t max_result = 1 << 20;
    // So many ranks with cores of their own put through cells, whatever the size.
    static constexpr int many_ranks = 8;

    // For a rank that is alone on its node.
    PathChoice() = default;
    PathChoice(int ranks, bool has_cma, bool has_cells, bool has_devices, CellLimits limits);

    // If CMA reaches the buffers.
    const CellLimits& limits() const { return limits_; }
    // `result`: bytes of the call's result.
    void begin(std::size_t result);
    // `peer` has said how its buffer may be written. Only if ranks use GPUs.
    void know(int peer, WritePath path);
    bool is_known(int peer) const { return at(peer) != PutPath::unknown; }
    // open: the caller tries CMA and then calls report().
    PutPath choose(int peer, std::size_t bytes, bool is_from_device)
    {
        PutPath& path = at(peer);
        const bool is_by_cpu = path == PutPath::open || path == PutPath::cma;
        if (is_by_cpu && is_from_device) path = PutPath::cells;
        if (path == PutPath::open && bytes <= limits_.put) path = PutPath::cells;
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
    CellLimits limits_;
    std::vector<PutPath> paths_;  // by peer, in this call
};

}  // namespace hier
