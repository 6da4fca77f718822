// SPDX-License-Identifier: BSD-3-Clause
#include "memory.hpp"

#include "test/mpi/lib/gpu_memory.hpp"
#include "test/sim/hip_sim.h"

#include <dlfcn.h>

// The simulated runtimes do not have it.
#ifdef HIER_CUDA
#pragma weak cudaMemGetInfo
#else
#pragma weak hipMemGetInfo
#endif

namespace hier_test::fuzz {

namespace {

class GpuBlock : public Block {
public:
    GpuBlock(Kind kind, std::size_t bytes) : memory_(kind, bytes) {}

    const char* kind() const override { return name_of(memory_.kind()); }
    unsigned char* data() override { return memory_.data(); }
    std::size_t bytes() const override { return memory_.bytes(); }
    void write(std::size_t offset, const Content& content) override
    {
        memory_.write(offset, content);
    }
    Content read(std::size_t offset, std::size_t bytes) override
    {
        return memory_.read(offset, bytes);
    }

private:
    Memory memory_;
};

}  // namespace

const char* const prefix_of_programs = "gpu_";

// Two ranks share a device.
void choose_device(int rank) { require_hip(hipSetDevice(rank / 2 % devices()), "hipSetDevice"); }

std::unique_ptr<Block> allocate(unsigned kind, std::size_t bytes)
{
    return std::make_unique<GpuBlock>(static_cast<Kind>(kind), bytes);
}

unsigned draw_kind(Random& random)
{
    return random.one_in(2) ? static_cast<unsigned>(Kind::device) : random.below(kinds);
}

unsigned number_of_kinds() { return kinds; }

const char* name_of_kind(unsigned kind) { return name_of(static_cast<Kind>(kind)); }

std::vector<DeviceFigure> device_figures()
{
    const auto live =
        reinterpret_cast<decltype(&hip_sim_live)>(dlsym(RTLD_DEFAULT, "hip_sim_live"));
    std::vector<DeviceFigure> figures;
    if (live != nullptr) {
        // hier keeps pools of these, which grow when more is wanted at once than ever before.
        for (const char* what : {"allocations", "pinned", "streams"}) {
            figures.push_back({what, live(what), 4});
        }
        figures.push_back({"events", live("events"), 16});
        // Each rank maps the pools of others. Addresses stay reserved until other ones are wanted.
        figures.push_back({"mappings", live("mappings"), 12});
        figures.push_back({"reservations", live("reservations"), 4});
        for (const char* what : {"registrations", "segments", "handles"}) {
            figures.push_back({what, live(what), 0});
        }
        return figures;
    }
    std::size_t free = 0;
    std::size_t total = 0;
#ifdef HIER_CUDA
    require_hip(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
#else
    require_hip(hipMemGetInfo(&free, &total), "hipMemGetInfo");
#endif
    // All processes share the device. Each may keep up to 256 MiB mapped that its owner has freed
    // (PeerMappings::max_freed), so the figure goes up and down.
    return {{"device MiB", (total - free) >> 20, 256}};
}

// On an H100 14 MB appear at some moment, after some hundred calls, and no more later (47.7 MB after 2000 calls, 47.9
// after 8000). Most likely they are the driver's: the same calls on the simulated CUDA have none.
double kib_of_runtime() { return dlsym(RTLD_DEFAULT, "hip_sim_live") != nullptr ? 0 : 16 << 10; }

// What hier does about freed memory:
// - A rank looks at each 16th call of a communicator whether segments are gone that it has offered to others, at a few of
//   them (VmmExports), and its peers then unmap these.
// - A rank that opens a mapping of an allocation closes those of freed ones, from 256 MiB on (PeerMappings::max_freed).
//   It learns of freed memory when the owner offers new memory.
void close_mappings_of_freed(MPI_Comm communicator)
{
    constexpr std::size_t block = std::size_t{64} << 10;
    constexpr std::size_t much = std::size_t{256} << 20;
    constexpr int calls_to_look_at_all_segments = 320;
    int ranks = 0;
    MPI_Comm_size(communicator, &ranks);
    const std::size_t little = block * static_cast<std::size_t>(ranks);
    const auto use_and_free = [&](std::size_t bytes, int calls) {
        void* memory = nullptr;
        require_hip(hipMalloc(&memory, bytes), "hipMalloc");
        for (int i = 0; i < calls; ++i) {
            MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, memory, block, MPI_BYTE, communicator);
        }
        require_hip(hipFree(memory), "hipFree");
    };
    use_and_free(little, calls_to_look_at_all_segments);
    use_and_free(much, 1);
    use_and_free(little, 1);
    use_and_free(little, 1);
}

}  // namespace hier_test::fuzz
