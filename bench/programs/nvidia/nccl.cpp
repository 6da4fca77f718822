// SPDX-License-Identifier: BSD-3-Clause
#include "nccl.hpp"

#include "bench/lib/program/program.hpp"

#include <algorithm>
#include <cstdlib>

namespace bench {
namespace {

std::string version_text(int code)
{
    return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
           std::to_string(code % 100);
}

#if HIER_BENCH_NCCL_WINDOWS
// A window consists of whole pages of GPU memory.
constexpr std::size_t page_bytes = std::size_t{2} << 20;

std::size_t whole_pages(std::size_t bytes)
{
    return bytes == 0 ? page_bytes : (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

class WindowMemory final : public CudaMemory {
public:
    void* allocate(std::size_t bytes) noexcept override
    {
        void* pointer = nullptr;
        const ncclResult_t result =
            ncclMemAlloc(&pointer, whole_pages(std::max<std::size_t>(bytes, 1)));
        return result == ncclSuccess ? pointer : nullptr;
    }

    void release(void* pointer) noexcept override
    {
        if (pointer != nullptr && ncclMemFree(pointer) != ncclSuccess) {
            give_up(std::string("ncclMemFree: ") + ncclGetLastError(nullptr));
        }
    }
};
#endif

std::unique_ptr<Memory> make_memory(NcclMode mode)
{
#if HIER_BENCH_NCCL_WINDOWS
    if (mode != NcclMode::plain) {
        return std::make_unique<WindowMemory>();
    }
#endif
    (void)mode;
    return std::make_unique<CudaMemory>();
}

ncclConfig_t make_config(NcclMode mode)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
#if HIER_BENCH_NCCL_ZERO_CTA
    if (mode == NcclMode::zero_cta) {
        config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
    }
#endif
    (void)mode;
    return config;
}

}  // namespace

std::optional<NcclMode> parse_nccl_mode(std::string_view text)
{
    for (const NcclMode mode : {NcclMode::plain, NcclMode::symmetric, NcclMode::zero_cta}) {
        if (text == name_of(mode)) {
            return mode;
        }
    }
    return std::nullopt;
}

const char* name_of(NcclMode mode)
{
    switch (mode) {
    case NcclMode::plain:
        return "plain";
    case NcclMode::symmetric:
        return "symmetric";
    case NcclMode::zero_cta:
        return "zero-cta";
    }
    return "";
}

std::string missing(NcclMode mode)
{
    const bool there = mode == NcclMode::plain ||
                       (mode == NcclMode::symmetric && HIER_BENCH_NCCL_WINDOWS) ||
                       (mode == NcclMode::zero_cta && HIER_BENCH_NCCL_ZERO_CTA);
    return there ? ""
                 : "this program was built with NCCL " + version_text(NCCL_VERSION_CODE) +
                       ", which has no " + name_of(mode) + " mode; leave it out with --by";
}

std::string nccl_text()
{
    int version = 0;
    if (ncclGetVersion(&version) != ncclSuccess) {
        version = NCCL_VERSION_CODE;
    }
    const char* nvls = std::getenv("NCCL_NVLS_ENABLE");
    return "NCCL " + version_text(version) +
           (nvls != nullptr ? std::string(", NCCL_NVLS_ENABLE=") + nvls : "");
}

Memories nccl_memories(NcclMode mode) { return {make_memory(mode), make_memory(mode)}; }

NcclAllgather::NcclAllgather(MPI_Comm comm, NcclMode mode) : mode_(mode)
{
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks_);
    ncclUniqueId id{};
    if (rank_ == 0) {
        require(ncclGetUniqueId(&id), "ncclGetUniqueId");
    }
    MPI_Bcast(&id, static_cast<int>(sizeof id), MPI_BYTE, 0, comm);
    ncclConfig_t config = make_config(mode);
    require(ncclCommInitRankConfig(&nccl_, ranks_, id, rank_, &config), "ncclCommInitRankConfig");
}

NcclAllgather::~NcclAllgather() { require(ncclCommDestroy(nccl_), "ncclCommDestroy"); }

void NcclAllgather::require(ncclResult_t result, const char* what) const
{
    if (result != ncclSuccess) {
        give_up(std::string(what) + " (" + name_of(mode_) + "): " + ncclGetErrorString(result) +
                "; " + ncclGetLastError(nccl_) + "; NCCL_DEBUG=WARN tells more");
    }
}

#if HIER_BENCH_NCCL_WINDOWS
ncclWindow_t NcclAllgather::make_window(void* buffer, std::size_t bytes) const
{
    ncclWindow_t window = nullptr;
    require(
        ncclCommWindowRegister(nccl_, buffer, whole_pages(bytes), &window, NCCL_WIN_COLL_SYMMETRIC),
        "ncclCommWindowRegister");
    if (window == nullptr) {
        give_up(std::string("ncclCommWindowRegister (") + name_of(mode_) +
                "): this machine has no symmetric windows; leave the mode out with --by");
    }
    return window;
}
#endif

void NcclAllgather::attach(void* send, std::size_t send_bytes, void* receive,
                           std::size_t receive_bytes)
{
#if HIER_BENCH_NCCL_WINDOWS
    if (mode_ != NcclMode::plain) {
        if (send_bytes > 0) {
            send_window_ = make_window(send, send_bytes);
        }
        receive_window_ = make_window(receive, receive_bytes);
    }
#endif
    (void)send, (void)send_bytes, (void)receive, (void)receive_bytes;
}

void NcclAllgather::detach()
{
#if HIER_BENCH_NCCL_WINDOWS
    for (ncclWindow_t* window : {&receive_window_, &send_window_}) {
        if (*window != nullptr) {
            require(ncclCommWindowDeregister(nccl_, *window), "ncclCommWindowDeregister");
            *window = nullptr;
        }
    }
#endif
}

void NcclAllgather::call(const void* send, void* receive, std::size_t bytes)
{
    if (send == nullptr) {
        send = static_cast<const std::byte*>(receive) + static_cast<std::size_t>(rank_) * bytes;
    }
    require(ncclAllGather(send, receive, bytes, ncclInt8, nccl_, stream_.get()), "ncclAllGather");
    stream_.wait();
}

}  // namespace bench
