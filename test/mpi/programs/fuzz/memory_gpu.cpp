// SPDX-License-Identifier: BSD-3-Clause
#include "memory.hpp"

#include "test/mpi/lib/gpu_memory.hpp"
#include "test/sim/hip_sim.h"

#include <dlfcn.h>

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

const char* name_of_kind(unsigned kind) { return name_of(static_cast<Kind>(kind)); }

std::vector<DeviceFigure> device_figures()
{
    const auto live =
        reinterpret_cast<decltype(&hip_sim_live)>(dlsym(RTLD_DEFAULT, "hip_sim_live"));
    std::vector<DeviceFigure> figures;
    if (live != nullptr) {
        for (const char* what : {"allocations", "pinned", "registrations", "mappings", "streams",
                                 "events", "segments", "handles", "reservations"}) {
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

}  // namespace hier_test::fuzz
