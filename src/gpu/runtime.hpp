// SPDX-License-Identifier: BSD-3-Clause
// The GPU runtime of this process: the module for the runtime that the application uses. None of
// these functions makes a context on a device that the application has not used.
#pragma once

#include <string>

#include "hier/gpu.hpp"

namespace hier::gpu {

// `choice` is a HIER_GPU_*. Call this before any other function here.
void choose_runtime(int choice);
// nullptr: there is no runtime so far. Searches again if the process has loaded libraries since.
Runtime* runtime();
// Like runtime(), but also tries runtimes that are not loaded. `reason`: why there is none.
Runtime* find_runtime(std::string& reason);

// Tells in which memory addresses lie. Memory that no runtime knows is host memory.
class Inspector {
public:
    // Looks for the runtime once. Then inspect() can be called for several addresses.
    Inspector();
    Status inspect(const void* address, Allocation& allocation) const;
    // Without a look at any address. Memory that no runtime knows may still be out of the CPU's reach if a runtime
    // is broken.
    bool finds_host_only() const;

private:
    const Runtime* runtime_;
    bool is_untouched_ = false;  // CUDA is loaded, but not used yet: no memory is CUDA's
};

inline Status inspect(const void* address, Allocation& allocation)
{
    return Inspector().inspect(address, allocation);
}
// The device of the last device memory that inspect() has seen, in any thread. Before any, the
// device of the first pinned memory that it has seen. -1: neither so far.
int used_device();
// The process's queue of this device. nullptr: the cause has been logged.
Queue* queue(int device);
// Limits the waits for copies of the queues that are made from now on.
void limit_waits(WaitLimit limit);
// May other ranks of the node write into this rank's device memory? The default is yes.
void let_peers_write(bool may);
bool peers_may_write();
// May hier launch kernels? These write into the peers' device memory, so peers_may_write() has to be
// true as well.
void let_kernels_run(bool may);
bool may_use_kernels();
// Blocks, up to the limit of limit_waits(). All copies read or write memory of the same device.
Status copy_now(std::span<const Copy> copies);

// While the object lives, this thread has no context, if that is wanted.
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

// Destroys the queues of the process. No copy may run any more.
void release_runtime();

}  // namespace hier::gpu
