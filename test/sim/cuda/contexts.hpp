// SPDX-License-Identifier: BSD-3-Clause
// CUDA's contexts, which HIP does not have. Each device has its primary context, and each thread
// has a stack of contexts.
#pragma once

#include <cuda.h>

namespace cuda_sim {

void initialize();  // a use of the driver; makes no context
// A use of the runtime. A thread without a context gets the context of its device.
void enter_runtime();
void set_device(int device);
void end_context();  // of this thread

bool is_initialized();
CUcontext current();  // of this thread; nullptr: none
bool is_active(int device);
// Does cudaMemcpy return only when the copy is done? CU_CTX_SYNC_MEMOPS demands that for this
// thread's context, and an attribute of the memory demands it for copies of this memory
// (driver.cpp).
bool completes_copies();
bool completes_copies(const void* memory);

// Is this word in CUDA_SIM_REFUSES? The words are:
//
//   batches      copies in batches
//   registering  registration of host memory
//   mapping      memory of peers
//   graphs       graphs
//   addresses    host addresses for registered host memory, as under WSL
//   mps          processes use a device together
//   gdrcopy      GDRCopy (gdrapi.cpp)
//   pins         memory that GDRCopy pins
//   segments     VMM segments that GDRCopy pins
//   unprepared   copies of up to 4 MiB inside a device, in cudaMalloc's memory, without a graph
bool refuses(const char* what);

// Aborts. A call that is not simulated must not get any answer.
[[noreturn]] void give_up(const char* what);

}  // namespace cuda_sim
