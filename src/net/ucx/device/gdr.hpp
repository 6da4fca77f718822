// SPDX-License-Identifier: BSD-3-Clause
// May the network read and write device memory itself (GPUDirect RDMA), without a bounce buffer?
#pragma once

#include <string>

namespace hier {

// The facts about a lane before any buffer is seen.
struct GdrFacts {
    const char* memory;  // "CUDA", "ROCm"
    const char* transports;
    bool is_known;         // UCX says that it knows this memory
    bool is_rdma;          // the transports are RDMA's
    unsigned ucx_version;  // 100 * major + minor
};

// Pure. `setting` is a HIER_GPU_DIRECT_*. Why not, in words; "": it may.
std::string why_not_gdr(int setting, const GdrFacts& facts);

}  // namespace hier
