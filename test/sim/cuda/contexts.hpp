// SPDX-License-Identifier: BSD-3-Clause
// What CUDA has and HIP has not: contexts, of each device its primary one, on a stack of each thread.
#pragma once

#include <cuda.h>

namespace cuda_sim {

void initialize();  // the driver, which makes no context
// Of the runtime: makes a context for a thread that has none, that of its device.
void enter_runtime();
void set_device(int device);
void end_context();  // this thread's

bool is_initialized();
CUcontext current();  // of this thread; nullptr: none
bool is_active(int device);
// What was asked for: do cudaMemcpy and its like, in this thread's context (CU_CTX_SYNC_MEMOPS) or with
// this memory (driver.cpp), come back only when they are done?
bool completes_copies();
bool completes_copies(const void* memory);

// Is this one of the words in CUDA_SIM_REFUSES? "batches" of copies, "registering" memory of the host,
// "mapping" that of peers, "graphs", and "addresses" of the host for its registered memory, as under
// WSL; "unprepared" copies of 4 MiB at most between two places of cudaMalloc's memory on one device.
bool refuses(const char* what);

// Whoever asks for what is not simulated must not be told anything.
[[noreturn]] void give_up(const char* what);

}  // namespace cuda_sim
