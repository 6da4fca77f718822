// SPDX-License-Identifier: BSD-3-Clause
// The CPU reads and writes small blocks of device memory itself, where the GPU runtime has a window to
// that memory (gpu::CpuWindow). Such a block needs neither a copy nor a kernel.
//
// Loads take about 1 us for 64 bytes over PCIe. So a trial finds out up to which size the CPU is
// quicker than a copy, and that each side sees what the other one has stored.
//
// Source: Open MPI's coll/accelerator (ompi, pull request 13006).
#pragma once

#include <cstddef>
#include <memory>

#include "hier/gpu.hpp"
#include "hier/transport.hpp"

namespace hier {

// The largest block of a device's memory that the CPU moves quicker than copies. 0: it moves none. By a
// trial, once in a process for each device.
std::size_t max_block_by_cpu(int device);

// Holds the window to the buffer of the last call, in which the next one often has the same.
class ReachedBuffer {
public:
    // null: the CPU does not reach it. The window lives until the next call of this function.
    const gpu::CpuWindow* window(const Region& buffer);

private:
    Region asked_;
    std::shared_ptr<const gpu::CpuWindow> window_;
};

}  // namespace hier
