// SPDX-License-Identifier: BSD-3-Clause
// The GPU runtime of this process: the module of the runtime that the application uses. None of
// this makes a context on a device that the application has not used.
#pragma once

#include <string>

#include "hier/gpu.hpp"

namespace hier::gpu {

// A HIER_GPU_*; before anything else.
void choose_runtime(int choice);
// nullptr: there is none (yet). Asks again when the process has loaded libraries since.
Runtime* runtime();
// As above, and looks for a runtime that the process has not loaded. `reason`: why there is none.
Runtime* find_runtime(std::string& reason);

// Tells what addresses belong to. Memory that no runtime knows belongs to the host.
class Inspector {
public:
    // Looks for the runtime once, for several addresses.
    Inspector();
    Status inspect(const void* address, Allocation& allocation) const;

private:
    const Runtime* runtime_;
    bool is_untouched_ = false;  // CUDA is loaded, and no memory is its own yet
};

inline Status inspect(const void* address, Allocation& allocation)
{
    return Inspector().inspect(address, allocation);
}
// The device of the last memory that inspect() found to belong to one, on this thread or another,
// or else of the first pinned memory; -1: none yet.
int used_device();
// The process's queue of this device. nullptr: the cause has been logged.
Queue* queue(int device);
// How long copies are waited for, by queues that are made from then on; 0: for ever.
void limit_waits(std::chrono::milliseconds bound);
// May other ranks of the node write into this one's device memory? Yes, unless said otherwise.
void let_peers_write(bool may);
bool peers_may_write();
// Blocking, within that bound, each from or into memory of one and the same device.
Status copy_now(std::span<const Copy> copies);

// While it lives, this thread has no context, if that is wanted.
class ContextPause {
public:
    explicit ContextPause(bool is_wanted);
    ~ContextPause();
    ContextPause(const ContextPause&) = delete;
    ContextPause& operator=(const ContextPause&) = delete;

private:
    const Runtime* runtime_;
    Contexts contexts_;
};

// Gives up what the process holds; nothing is running any more.
void release_runtime();

}  // namespace hier::gpu
