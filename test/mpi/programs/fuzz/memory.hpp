// SPDX-License-Identifier: BSD-3-Clause
// The memory of the buffers. Each program is linked with one source of memory: that of the host (memory_host.cpp), or all
// kinds of memory of a GPU runtime (memory_gpu.cpp).
#pragma once

#include "random.hpp"

#include <memory>
#include <mpi.h>
#include <string>
#include <vector>

namespace hier_test::fuzz {

using Content = std::vector<unsigned char>;

class Block {
public:
    Block() = default;
    virtual ~Block() = default;
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    Block(Block&&) = delete;
    Block& operator=(Block&&) = delete;

    virtual const char* kind() const = 0;
    virtual unsigned char* data() = 0;
    virtual std::size_t bytes() const = 0;
    // The CPU may not reach the memory, so only these look into it.
    virtual void write(std::size_t offset, const Content& content) = 0;
    virtual Content read(std::size_t offset, std::size_t bytes) = 0;
};

// "gpu_" where there is a GPU runtime, else "".
extern const char* const prefix_of_programs;
// Before the first block of a thread: makes a device current.
void choose_device(int rank);
// Memory of a kind that is drawn.
std::unique_ptr<Block> allocate(unsigned kind, std::size_t bytes);
unsigned draw_kind(Random& random);
unsigned number_of_kinds();
const char* name_of_kind(unsigned kind);

// What the runtime holds for this process; `slack` is how much that may vary. Empty without a runtime.
struct DeviceFigure {
    std::string name;
    std::uint64_t value;
    double slack;
};
std::vector<DeviceFigure> device_figures();
// How much private memory of the host the runtime may allocate at a later moment.
double kib_of_runtime();
// hier keeps mappings of device memory that its owner has freed. With this call all ranks make each other close them.
void close_mappings_of_freed(MPI_Comm communicator);

}  // namespace hier_test::fuzz
