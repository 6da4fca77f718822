// SPDX-License-Identifier: BSD-3-Clause
// Memory that the core asks of a GPU runtime, or makes known to it.
#pragma once

#include <cstddef>

#include "hier/status.hpp"

namespace hier::gpu {

// The rules of Runtime on threads, devices and errors hold here too.
//
// Every function that gives memory back waits for all copies first. If one of them does not end
// within its queue's bound, the memory is not given back, because the copy may still use it.
class MemoryRuntime {
public:
    virtual ~MemoryRuntime() = default;

    // nullptr: the cause has been logged.
    virtual std::byte* allocate_device(int device, std::size_t bytes) const = 0;
    // Memory whose words kernels of other devices store while a kernel of this device reads them.
    virtual std::byte* allocate_for_kernels(int device, std::size_t bytes) const = 0;
    // Of either kind.
    virtual void free_device(int device, std::byte* memory) const = 0;
    // Host memory that all devices reach. `device` is any device that is in use.
    virtual std::byte* allocate_pinned(int device, std::size_t bytes) const = 0;
    virtual void free_pinned(int device, std::byte* memory) const = 0;
    // Makes host memory that exists already, page-aligned, into such memory.
    virtual Status register_host(int device, void* memory, std::size_t bytes) const = 0;
    // False: the memory has to stay where it is.
    virtual bool unregister_host(int device, void* memory) const = 0;
};

}  // namespace hier::gpu
