// SPDX-License-Identifier: BSD-3-Clause
// The CPU reads and writes small blocks of device memory itself, where it reaches that memory: that
// of AMD's GPUs behind a large BAR. Such a block needs neither a copy nor a kernel.
//
// Loads take about 1 us for 64 bytes over PCIe. So a trial finds out up to which size the CPU is
// quicker than a copy, and that each side sees what the other one has stored.
//
// Source: Open MPI's coll/accelerator (ompi, pull request 13006).
#pragma once

#include <cstddef>

#include "hier/gpu.hpp"
#include "hier/transport.hpp"

namespace hier {

// To the memory of one device.
struct CpuAccess {
    gpu::CpuReach reach = {};
    std::size_t max_block = 0;  // that the CPU moves quicker than copies; 0: it moves none

    // The device sees what the CPU has stored. `stored`: some byte of that.
    void flush(const std::byte* stored) const;
};

// By a trial, once in a process for each device.
const CpuAccess& cpu_access(int device);

// Does the CPU reach the buffers of calls? Asks the system once for each allocation, because the
// CPU does not reach what the application has mapped itself.
class ReachedBuffer {
public:
    bool is_reached(const Region& buffer);

private:
    Allocation asked_;
    bool is_readable_ = false;
};

}  // namespace hier
