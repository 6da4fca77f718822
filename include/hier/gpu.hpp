// SPDX-License-Identifier: BSD-3-Clause
// The interface between the core and a GPU runtime. One source in src/gpu implements it. The build
// makes a module of this source for ROCm and another one for CUDA. src/gpu/runtime.hpp opens the
// module of the runtime that the process uses.
//
// Any thread may call these functions, with any device current. They leave the current device as it
// was. If a function returns an error, the error has been logged.
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

// How a device and its copy engines come to see the bytes that a NIC has written into the device's
// memory. A signal only proves that the data was sent.
enum class RdmaFlush : std::uint8_t {
    none,        // nothing has to be done
    by_runtime,  // Runtime::flush_rdma()
    by_read,     // the NIC has to read from that memory
};

// A piece of device memory that the CPU reads and writes. All addresses are those of the device, which
// the CPU may reach at others. Any thread may use a window. The memory may be freed meanwhile, but then
// nobody may read or write it any more.
class CpuWindow {
public:
    explicit CpuWindow(std::span<const std::byte> memory) : memory_(memory) {}
    virtual ~CpuWindow() = default;
    CpuWindow(const CpuWindow&) = delete;
    CpuWindow& operator=(const CpuWindow&) = delete;

    bool has(const std::byte* base, std::size_t bytes) const
    {
        return base >= memory_.data() && base + bytes <= memory_.data() + memory_.size();
    }
    virtual void load(void* to, const std::byte* from, std::size_t bytes) const = 0;
    virtual void store(std::byte* to, const void* from, std::size_t bytes) const = 0;
    // The device sees what the CPU has stored. `at`: any byte of the window.
    virtual void flush(const std::byte* at) const = 0;

protected:
    const std::span<const std::byte> memory_;
};

// The contexts of a thread. The first one is current.
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
    // Do the processes that share the device get it in turns, rather than together?
    virtual bool gives_turns(int device) const = 0;

    // Tells in which memory `address` lies. Host memory that the runtime does not know is no error.
    virtual Status inspect(const void* address, Allocation& allocation) const = 0;

    // Does the memory with this id still begin at `base`? The memory is an exported allocation or a
    // VMM segment.
    virtual bool is_there(const std::byte* base, std::uint64_t id, int device) const = 0;

    // Makes the handle by which other processes of this node map an allocation. False: this kind of
    // memory cannot be exported.
    virtual bool export_memory(const Allocation& allocation, IpcHandle& handle) const = 0;
    // Maps another process's allocation for copies by `device`. Sets `base` to its address here.
    virtual Status map(const IpcHandle& handle, int device, std::byte*& base) const = 0;
    virtual void unmap(std::byte* base, int device) const = 0;

    // Memory that the core asks for.
    virtual const MemoryRuntime& memory() const = 0;
    // Memory that an application maps itself.
    virtual const VmmRuntime& vmm() const = 0;

    // Waits for all copies. False: a copy has exceeded its bound, and may use its memory for ever.
    virtual bool finish_copies() const = 0;

    virtual std::unique_ptr<Queue> make_queue(int device, WaitLimit limit) const = 0;
    // Are kernels for this device installed? It may refuse them all the same: Queue::has_kernels().
    virtual bool has_kernels(int device) const = 0;
    // Does copies that a queue has failed to do. Blocks without a limit, and is slow.
    virtual Status copy_plainly(std::span<const Copy> copies) const = 0;
    // Do kernels see what peers have written only after a ticket of this rank's own queue? The
    // ticket is one of start() without copies, taken when all bytes have arrived.
    virtual bool needs_acquire() const = 0;

    // Takes the contexts of the calling thread away, and gives them back. ROCm has no contexts.
    virtual Contexts leave_contexts() const = 0;
    virtual void enter_contexts(const Contexts& contexts) const = 0;

    virtual RdmaFlush rdma_flush(int device) const = 0;
    // Only where the flush is by_runtime. Makes visible what has landed so far. Blocks for some us.
    virtual Status flush_rdma(int device) const = 0;

    // A window to a buffer in device memory. null: the CPU does not reach the buffer, and `reason` says
    // why. The memory is the allocation that the buffer begins in. A window to the buffer's neighbours is
    // quick to get again.
    virtual std::shared_ptr<const CpuWindow> cpu_window(std::span<const std::byte> buffer,
                                                        const Allocation& memory,
                                                        std::string& reason) const = 0;
    // Keeps no window any more that nobody holds.
    virtual void release_cpu_windows() const = 0;
};

// The name of the function that a module exports. Its number changes with this interface. The
// function returns nullptr if there is no device, and `reason` says why. If the runtime did not say
// whether there is a device, `is_broken` is set, and a later call may have an answer. `log` takes
// later messages.
inline constexpr const char* entry_point = "hier_gpu_open_13";
using Open = Runtime* (*)(void (*log)(int level, const char* line), char* reason,
                          std::size_t reason_bytes, bool& is_broken);

}  // namespace hier::gpu
