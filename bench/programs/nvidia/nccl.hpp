// SPDX-License-Identifier: BSD-3-Clause
// ncclAllGather in three modes.
#pragma once

#include "bench/lib/collective/collective.hpp"
#include "bench/lib/memory/memory.hpp"
#include "cuda.hpp"

#include <mpi.h>
#include <nccl.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

// Symmetric windows came with 2.27, the zero-CTA policy with 2.28.
#define HIER_BENCH_NCCL_WINDOWS (NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0))
#define HIER_BENCH_NCCL_ZERO_CTA (NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0))

namespace bench {

enum class NcclMode {
    plain,      // buffers of cudaMalloc
    symmetric,  // symmetric windows
    zero_cta,   // symmetric windows, and copy engines in place of kernels
};

[[nodiscard]] std::optional<NcclMode> parse_nccl_mode(std::string_view text);
[[nodiscard]] const char* name_of(NcclMode mode);
// Empty if the NCCL of the build has the mode; else the reason.
[[nodiscard]] std::string missing(NcclMode mode);
// "NCCL 2.28.9", and the environment variable that changes its speed.
[[nodiscard]] std::string nccl_text();

// The memory that the mode needs.
[[nodiscard]] Memories nccl_memories(NcclMode mode);

// Every function is collective, constructor and destructor too. Uses the current device.
class NcclAllgather final : public Allgather {
public:
    NcclAllgather(MPI_Comm comm, NcclMode mode);
    ~NcclAllgather() override;

    void attach(void* send, std::size_t send_bytes, void* receive,
                std::size_t receive_bytes) override;
    void detach() override;
    void call(const void* send, void* receive, std::size_t bytes) override;

private:
    void require(ncclResult_t result, const char* what) const;
#if HIER_BENCH_NCCL_WINDOWS
    [[nodiscard]] ncclWindow_t make_window(void* buffer, std::size_t bytes) const;

    ncclWindow_t send_window_ = nullptr;
    ncclWindow_t receive_window_ = nullptr;
#endif
    NcclMode mode_;
    int rank_ = 0;
    int ranks_ = 0;
    ncclComm_t nccl_ = nullptr;
    CudaStream stream_;
};

}  // namespace bench
