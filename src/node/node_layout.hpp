// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a node divide the memory that they share.
//
//   failure | slots | signals | rings | displacements | areas of the ranks
//
//   slots     one of each rank: where its receive buffer is
//   signals   one word for each pair of ranks; two if ranks use devices
//   rings     two for each pair: for cells, and for cells of device memory
//   displacements
//             one of each rank and each block: where it begins in that rank's receive buffer
//   areas     one of each rank: its cells, and its two halves for published blocks
//
// Words of pairs lie in rows: those that a rank reads together are neighbours. Up to 64 ranks every
// word has a cache line of its own, and cells and halves are as large as speed wants them, within a
// limit for all halves. Above that the words are packed, and the areas get what is left of 4 MiB.
// Otherwise 256 ranks would share 60 MiB for each communicator.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cache.hpp"

namespace hier {

// The cells of one rank.
struct CellShape {
    std::size_t count = 0;
    std::size_t bytes = 0;  // of content
};

// An entry of a cell's ring. The rest is in the cell's header.
class CellEntry {
public:
    CellEntry(std::size_t cell, bool is_last)
        : word_(static_cast<std::uint8_t>(cell << 1 | (is_last ? 1 : 0)))
    {
    }
    std::size_t cell() const { return word_ >> 1; }
    bool is_last() const { return (word_ & 1) != 0; }  // of its put

private:
    std::uint8_t word_;
};

// An entry of a device cell's ring. The cell follows from the entry's number.
struct DeviceCellEntry {
    std::uint64_t offset;  // in the receive buffer
    std::uint32_t length;
    std::uint32_t is_last;  // of its put
};

// Where the rings of all pairs are.
struct RingTable {
    std::size_t length = 0;  // of a ring; 0: there are none
    std::size_t sender_at = 0, sender_stride = 0;
    std::size_t receiver_at = 0, receiver_stride = 0;
};

// Equal on all ranks of a node.
struct NodeNeeds {
    int ranks = 1;
    int blocks = 0;             // of a result: ranks of the team. As many as `ranks`: a single node
    bool have_devices = false;  // any rank uses a GPU runtime
    bool share_gpus = false;    // several ranks use the same GPU
    bool gpu_turns = false;     // such ranks get it in turns
    bool have_kernels = false;  // all ranks have, and gain by those that wait
    bool by_cpu = false;        // the CPU of each rank moves small blocks of device memory
    bool share_cores = false;   // the host has more ranks than cores
    bool has_cma = false;
    bool is_cma_slow = false;  // a copy takes slow_cma_start or more before it moves bytes
    bool has_areas = true;     // cells, and published blocks
    // Up to so many ranks every word has a cache line. Above, all should fit into max_bytes, which
    // from some 300 ranks on it does not. Tests pack the words of few ranks.
    int max_roomy = 64;
    std::size_t max_bytes = 4 << 20;

    bool publishes() const { return has_areas; }
    // Whatever the memory of the blocks?
    bool publishes_all() const
    {
        return publishes() && (!have_devices || share_gpus || have_kernels || by_cpu);
    }
    // Do two ranks lend their large blocks (lent_block.hpp)? On a single node, because then each has one
    // block in a call.
    bool lends() const
    {
        return ranks == 2 && blocks == 2 && has_areas && has_cma && !have_devices && !share_cores;
    }
    // The largest block of host memory that is copied into a half. Medians of a call in us on two Xeons, a
    // core for each rank, published / by CMA; the columns are bytes a rank. Some runs by shared
    // memory are twice as slow as others, in all their calls, and nobody knows why.
    //
    //                     16 cores, best of 2                 64 cores, median of 3
    //                32 KiB     64 KiB     128 KiB      24 KiB       32 KiB      64 KiB
    //     4 ranks   14 / 19    25 / 28     47 /  50     18 /  13    21 /  16    39 /  29
    //     6 ranks                                       24 /  24    35 /  33    67 /  55
    //     8 ranks   25 / 38    48 / 73    120 / 146     35 /  33    43 /  45    91 /  71
    //    16 ranks   62 / 84   160 / 180   341 / 361     70 /  81   103 /  95   263 / 194
    //    32 ranks                                      151 / 206   269 / 261   518 / 533
    //
    // Two ranks, medians of three:       4 KiB       8 KiB      12 KiB      16 KiB      32 KiB
    //     64 cores of Xeons         3.0 / 3.5   3.9 / 4.1   4.6 / 4.7   5.8 / 4.6  10.6 / 6.6
    //     16 cores of Xeons         2.0 / 3.7   3.0 / 3.4   3.7 / 4.1   4.6 / 4.8   8.1 / 6.0
    //     2 cores of a Xeon         1.5 / 2.2   2.3 / 2.1   3.1 / 2.2   3.6 / 2.8   6.6 / 4.0
    //     the same, later                       2.2 / 2.2
    //     2 cores of an EPYC        1.7 / 6.1   2.1 / 6.5   2.4 / 7.0   2.8 / 7.3   4.9 / 8.4
    //
    // "Later", which is a median of five, NodePublish asks for cache lines ahead of their use. All these are pushes by
    // CMA. Blocks that are lent take less time. In turns, the best of three, published / lent, buffers untouched, and
    // written and read as by an application:
    //
    //                                  8 KiB                 12 KiB                16 KiB                 24 KiB
    //     16 cores of Xeons    2.9 / 2.1, 3.2 / 3.6  3.6 / 2.9, 4.2 / 4.5  4.3 / 2.9, 4.9 / 5.4
    //     2 cores of an EPYC   1.4 / 2.8, 1.5 / 3.0  2.0 / 3.2, 2.2 / 3.4  2.6 / 3.5, 3.0 / 3.9  5.2 / 4.2, 4.5 / 4.8
    //
    // So two ranks lend blocks above 8 KiB, or above 16 KiB if CMA starts slowly. A copy of one word, as try_cma
    // times it, takes 0.5 to 0.9 us on Xeons and 1.6 to 2.2 on EPYCs.
    //
    // These ranks touch no buffer between calls. If they write the block before a call and read the result behind
    // it, CMA takes longer (path_choice.hpp has the cause), and published blocks of 64 KiB win by more. On 16
    // cores, the better of two runs, 48 and 64 KiB: 3 ranks 16 and 20 us published, 28 and 36 by CMA; 8 ranks 46 and
    // 58, and 121 and 155.
    //
    // Skewed calls gain more. By CMA the largest block holds all up, because its owner copies it to
    // every peer. Blocks of 1 : 2 : 3 ... on the 64 cores, bytes in all, the better of two runs:
    //
    //               128 KiB    256 KiB    512 KiB
    //     4 ranks   20 / 29    38 /  50
    //     8 ranks   13 / 44    39 /  75   86 / 115
    //    16 ranks   22 / 61    45 / 107   94 / 185
    std::size_t max_published(bool is_skewed) const;
    static constexpr double slow_cma_start = 1.2e-6;  // seconds
};

struct NodeLayout {
    static constexpr std::size_t device_cells_per_peer = 8;
    static constexpr std::size_t max_displacements = 16 << 10;  // of all ranks: 128 KiB

    int ranks = 1;
    std::size_t slots = 0;
    std::size_t signals = 0, signal_stride = 0;
    RingTable cell_rings, device_cell_rings;
    std::size_t displacements = 0, blocks = 0;  // no blocks: there are none, they would be too many
    std::size_t areas = 0, area_stride = 0;
    CellShape cells;        // in an area, each behind its header
    std::size_t half = 0;   // bytes of each of the two halves, behind the cells; 0: none
    std::size_t bytes = 0;  // of everything

    explicit NodeLayout(const NodeNeeds& needs);

    // Bytes of a cell with its header.
    static constexpr std::size_t cell_stride(std::size_t content) { return cache_line + content; }
};

}  // namespace hier
