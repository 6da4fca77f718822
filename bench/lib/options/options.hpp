// SPDX-License-Identifier: BSD-3-Clause
// The command lines of the programs of the bench.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

enum class Program : unsigned {
    allgather = 1,
    nccl_allgather = 2,
    gpu_overlap = 4,
    p2p = 8,
    levels = 16,
    allgatherv = 32,
    requests = 64,
    threads = 128
};
enum class Validate { none, few, all };
enum class LinkSource { absent, measured, given };
enum class MemoryKind { host, pinned, device };

struct MemoryPair {
    MemoryKind send = MemoryKind::host;
    MemoryKind receive = MemoryKind::host;
};

// Where a rank's bytes lie: in blocks, each `stride` bytes behind the one before. Between them are
// holes.
struct Blocks {
    std::size_t bytes = 0;  // of a block; 0: there are no holes
    std::size_t stride = 0;

    [[nodiscard]] bool is_whole() const { return bytes == 0; }
    // The memory that a rank's bytes take, with the hole behind the last block.
    [[nodiscard]] std::size_t extent(std::size_t shard_bytes) const
    {
        return is_whole() ? shard_bytes : shard_bytes / bytes * stride;
    }
    [[nodiscard]] bool is_hole(std::size_t offset) const
    {
        return !is_whole() && offset % stride >= bytes;
    }
};

struct Options {
    // Bytes a rank after share_sizes(), ascending as given; empty: measure the link only.
    std::vector<std::size_t> sizes;
    bool total = false;    // sizes were typed as bytes of all ranks together
    long iterations = 0;   // timed calls a size; 0: chosen by size and by seconds
    double seconds = 2.0;  // budget of the timed loop of one size when iterations is 0
    long warmup = -1;      // untimed calls a size; -1: chosen by size
    Validate validate = Validate::few;
    bool in_place = false;
    bool loop = false;   // also time calls back to back
    bool fresh = false;  // ranks write their blocks before each timed call, and read the result
    long buffers = 1;    // pairs of buffers that take turns
    Blocks blocks;
    MemoryPair memory;
    std::size_t gap = 0;        // bytes between the blocks of bench/allgatherv
    bool mixed_memory = false;  // each rank has another pair of kinds; `memory` is not used
    std::string csv;            // empty: no file
    std::string label;
    LinkSource link = LinkSource::absent;
    double link_rate = 0.0;     // if given: bytes per second, node and direction
    double link_seconds = 2.0;  // if measured: length of each timed stream
    int ranks_per_node = 0;  // 0: nodes are host names; k: each host is cut into nodes of k ranks
    std::vector<std::string> by;  // libraries and modes that take turns, as --help names them
    long gemm_size = 8192;        // N of N x N matrices
    double gemm_factor = 1.3;     // GEMM time / allgather time
    std::size_t copy_bytes = std::size_t{256} << 20;  // of bench/p2p
    bool help = false;
};

struct ParsedOptions {
    Options options;
    std::string error;  // empty: options are valid
};

// Pure, so every rank comes to the same result without communication.
[[nodiscard]] ParsedOptions parse_options(Program program, int argc, const char* const* argv);

// Turns total sizes into sizes a rank, rounded down. Returns the reason if MPI cannot count a size
// or if a size is no multiple of a block.
[[nodiscard]] std::string share_sizes(Options& options, int ranks);

[[nodiscard]] const char* name_of(Program program);
[[nodiscard]] const char* name_of(MemoryKind kind);
[[nodiscard]] std::string memory_text(const Options& options);
// "64@4096"; empty: there are no holes.
[[nodiscard]] std::string blocks_text(const Blocks& blocks);

[[nodiscard]] const char* usage(Program program);

}  // namespace bench
