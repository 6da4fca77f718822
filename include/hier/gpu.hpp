// SPDX-License-Identifier: BSD-3-Clause
// The core needs this of a GPU runtime. One source (src/gpu/) gives it, built once for ROCm and
// once for CUDA; each is a module of its own, which is opened where its runtime is installed
// (src/gpu/runtime.hpp).
//
// The functions may be called by any thread, with any device current, and leave the current device
// as it was. An error has been logged when its Status comes back.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "hier/gpu_memory.hpp"
#include "hier/gpu_queue.hpp"
#include "hier/gpu_vmm.hpp"
#include "hier/memory.hpp"
#include "hier/status.hpp"

namespace hier::gpu {

struct IpcHandle {
    std::array<std::byte, 64> bytes{};
    bool operator==(const IpcHandle&) const = default;
};

enum class Platform : std::uint8_t { rocm, cuda };

// How a device, its copy engines included, comes to see the bytes that a NIC has written into its
// memory. A signal proves only that the data was sent.
enum class RdmaFlush : std::uint8_t {
    none,        // it sees that of itself
    by_runtime,  // Runtime::flush_rdma()
    by_read,     // the NIC has to read from that memory
};

// Those of a thread, of which the first is the current one.
struct Contexts {
    std::array<void*, 8> all{};
    std::size_t count = 0;
};

class Runtime {
public:
    virtual ~Runtime() = default;

    virtual const char* name() const = 0;  // with its version
    virtual Platform platform() const = 0;
    virtual int devices() const = 0;  // > 0
    virtual int current_device() const = 0;
    virtual std::string pci_address(int device) const = 0;  // 0000:1b:00.0; empty: unknown

    // Tells what `address` belongs to. Host memory that the runtime does not know is no error.
    virtual Status inspect(const void* address, Allocation& allocation) const = 0;

    // Does the memory with this id still begin at `base`? It is an exported allocation or a VMM segment.
    virtual bool is_there(const std::byte* base, std::uint64_t id, int device) const = 0;

    // For another process of this node. False: this kind of memory cannot be exported.
    virtual bool export_memory(const Allocation& allocation, IpcHandle& handle) const = 0;
    // Maps another process's allocation for copies by `device`; gives where it begins here.
    virtual Status map(const IpcHandle& handle, int device, std::byte*& base) const = 0;
    virtual void unmap(std::byte* base, int device) const = 0;

    // Memory that the core asks for.
    virtual const MemoryRuntime& memory() const = 0;
    // Memory that an application maps itself.
    virtual const VmmRuntime& vmm() const = 0;

    // Waits for all copies. False: one does not end within its bound, and may use its memory for ever.
    virtual bool finish_copies() const = 0;

    // `bound`: how long it is waited for; 0: for ever.
    virtual std::unique_ptr<Queue> make_queue(int device,
                                              std::chrono::milliseconds bound) const = 0;
    // Blocking, without a queue: for what a queue fails to do. Slow, and without a bound.
    virtual Status copy_plainly(std::span<const Copy> copies) const = 0;
    // Must device memory that others have written be made visible to kernels by a ticket of this
    // rank's own queue (start() without copies), once all of it has arrived?
    virtual bool needs_acquire() const = 0;

    // Takes what contexts the calling thread has, and gives them back. None where that means nothing.
    virtual Contexts leave_contexts() const = 0;
    virtual void enter_contexts(const Contexts& contexts) const = 0;

    virtual RdmaFlush rdma_flush(int device) const = 0;
    // by_runtime: makes visible what has landed so far. Waits for some us.
    virtual Status flush_rdma(int device) const = 0;
};

// A module exports a function of this name. nullptr: there is no device, or (`is_broken`) the runtime
// does not say whether there is, and may the next time; `reason` tells. `log` takes what goes wrong
// later.
inline constexpr const char* entry_point = "hier_gpu_open_9";
using Open = Runtime* (*)(void (*log)(int level, const char* line), char* reason,
                          std::size_t reason_bytes, bool& is_broken);

}  // namespace hier::gpu
