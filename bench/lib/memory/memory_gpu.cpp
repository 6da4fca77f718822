// SPDX-License-Identifier: BSD-3-Clause
#include "memory_gpu.hpp"

#include "bench/lib/machine/local_rank.hpp"
#include "bench/lib/program/agree.hpp"
#include "bench/lib/program/program.hpp"

#include "gpu/runtime.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace bench {
namespace {

using hier::gpu::Runtime;

class GpuMemory final : public Memory {
public:
    GpuMemory(const Runtime& runtime, MemoryKind kind, int device)
        : runtime_(runtime), kind_(kind), device_(device)
    {
    }
    // Ends the streams of the copies, too.
    ~GpuMemory() override { hier::gpu::release_runtime(); }
    GpuMemory(const GpuMemory&) = delete;
    GpuMemory(GpuMemory&&) = delete;
    GpuMemory& operator=(const GpuMemory&) = delete;
    GpuMemory& operator=(GpuMemory&&) = delete;

    // Whole large pages, as frameworks allocate. Pushes into other lengths are slower on NVIDIA, by up
    // to a half (doc/gpu-memory.md).
    void* allocate(std::size_t bytes) noexcept override
    {
        constexpr std::size_t page = 2 << 20;
        const std::size_t size = std::max<std::size_t>((bytes + page - 1) / page, 1) * page;
        return kind_ == MemoryKind::device ? runtime_.memory().allocate_device(device_, size)
                                           : runtime_.memory().allocate_pinned(device_, size);
    }

    void release(void* pointer) noexcept override
    {
        if (pointer == nullptr) {
            return;
        }
        auto* const memory = static_cast<std::byte*>(pointer);
        kind_ == MemoryKind::device ? runtime_.memory().free_device(device_, memory)
                                    : runtime_.memory().free_pinned(device_, memory);
    }

    void write(void* to, const std::byte* from_host, std::size_t bytes) override
    {
        copy(to, from_host, bytes);
    }

    void read(std::byte* to_host, const void* from, std::size_t bytes) override
    {
        copy(to_host, from, bytes);
    }

    [[nodiscard]] std::size_t window_bytes() const override { return std::size_t{4} << 20; }

private:
    void copy(void* to, const void* from, std::size_t bytes) const
    {
        if (kind_ == MemoryKind::pinned) {
            std::memcpy(to, from, bytes);
            return;
        }
        const hier::gpu::Copy one{to, from, bytes, hier::gpu::Copy::inside};
        const hier::Status status = hier::gpu::copy_now({&one, 1});
        if (status != hier::Status::ok) {
            give_up("a copy of " + std::to_string(bytes) + " bytes between " + name_of(kind_) +
                    " memory and the host's failed: " + hier::to_string(status));
        }
    }

    const Runtime& runtime_;
    MemoryKind kind_;
    int device_;
};

// All pairs of kinds. A job of few ranks has only the first ones, so these are the most important.
MemoryPair mixed_pair(int rank)
{
    constexpr MemoryKind host = MemoryKind::host;
    constexpr MemoryKind pinned = MemoryKind::pinned;
    constexpr MemoryKind device = MemoryKind::device;
    constexpr std::array<MemoryPair, 9> pairs{{{device, device},
                                               {host, device},
                                               {device, host},
                                               {host, host},
                                               {pinned, device},
                                               {device, pinned},
                                               {pinned, host},
                                               {host, pinned},
                                               {pinned, pinned}}};
    return pairs[static_cast<std::size_t>(rank) % pairs.size()];
}

bool needs_gpu(const Options& options)
{
    return options.mixed_memory || options.memory.send != MemoryKind::host ||
           options.memory.receive != MemoryKind::host;
}

std::unique_ptr<Memory> make_memory(const Runtime* runtime, MemoryKind kind, int device)
{
    if (kind == MemoryKind::host) {
        return make_host_memory();
    }
    return std::make_unique<GpuMemory>(*runtime, kind, device);
}

}  // namespace

Placement place_buffers(MPI_Comm comm, const Options& options)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    Placement placement;
    const Runtime* runtime = nullptr;
    int device = 0;
    if (needs_gpu(options)) {
        std::string reason;
        runtime = hier::gpu::find_runtime(reason);
        placement.failure = agree_on_failure(
            comm, runtime != nullptr ? ""
                                     : "--memory " + memory_text(options) + ": rank " +
                                           std::to_string(rank) + " has no GPU: " + reason);
        const int local = local_rank(comm);
        if (!placement.failure.empty()) {
            return placement;
        }
        placement.gpu_runtime = runtime->name();
        device = local % runtime->devices();
    }
    const MemoryPair pair = options.mixed_memory ? mixed_pair(rank) : options.memory;
    placement.memories.send = make_memory(runtime, pair.send, device);
    placement.memories.receive = make_memory(runtime, pair.receive, device);
    return placement;
}

}  // namespace bench
