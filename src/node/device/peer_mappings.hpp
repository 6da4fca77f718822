// SPDX-License-Identifier: BSD-3-Clause
// Device memory of other processes of this node, mapped here: kept from call to call, because
// mapping takes some 100 us to 100 ms.
//
// A mapping dies with its allocation: when the owner's memory is given back and allocated anew at
// the same address, the new allocation has another id, and every old mapping that overlaps it is
// closed before the new one is opened. So are those of memory that its owner says is freed, since it
// stays taken meanwhile. Closing waits for all the device's streams, so the mappings of a call stay
// open until it ends, and others until there is a reason.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <span>
#include <vector>

#include "hier/gpu.hpp"
#include "node/device/node_socket.hpp"

namespace hier {

// A process tells its peers this of an allocation. It lies in shared memory.
struct ExportedMemory {
    std::uint64_t base;  // in its owner
    std::uint64_t length;
    std::uint64_t id;
    std::int32_t owner;  // process id
    std::int32_t reserved;
    gpu::IpcHandle handle;
};

class PeerMappings {
public:
    static PeerMappings& instance();

    struct Mapping {
        ExportedMemory memory;
        int device;       // for whose copies
        std::byte* base;  // here; null: it cannot be mapped
        int users;
        bool is_stale;  // other memory is there now
        bool is_freed;  // as its owner says
    };

    // Gives the mapping to use until release(). What the runtime has refused it is not asked for again,
    // but for want of memory: GPUs may have no way to each other. An error of this attempt alone, too,
    // while somebody still uses a mapping of what lay there before: some runtimes would give that out
    // again (ROCm's handles are made of the owner and the address).
    Status acquire(const ExportedMemory& memory, int device, Mapping*& mapping);
    void release(Mapping* mapping);
    // Or will one have to be opened?
    bool has(const ExportedMemory& memory, int device);
    // These allocations are gone. Their mappings are closed when another one has to be opened anyway. To
    // close them is to wait for kernels, which may wait for a rank that is in a call with this one.
    void note_freed(std::int32_t owner, std::span<const NodeSocket::Entry> freed);
    // Closes all that are not in use.
    void clear();
    std::size_t size();

    // More are closed again, those first that were used longest ago.
    static constexpr std::size_t most = 256;
    // Bytes of freed memory that stay mapped at most when another mapping is opened.
    static constexpr std::uint64_t max_freed = 256 << 20;
    // Attempts for memory of one process by one device, where none has worked: they have no way to
    // each other. From then on one in so many is made.
    static constexpr int max_refusals = 3;
    static constexpr unsigned asked_again = 64;

private:
    using Iterator = std::list<Mapping>::iterator;
    Iterator close(Iterator mapping);
    bool close_overlapping(const ExportedMemory& memory);  // false: one is in use
    void close_oldest();
    void close_freed();

    // By an owner, and a device that copies.
    struct Attempts {
        std::int32_t owner;
        int device;
        int refusals = 0;
        unsigned unasked = 0;
        bool has_worked = false;
    };
    Attempts& attempts_on(std::int32_t owner, int device);
    static bool is_worth_asking(Attempts& attempts);

    Iterator find(const ExportedMemory& memory, int device);

    std::mutex mutex_;
    std::list<Mapping> mappings_;  // the one used last is first
    std::vector<Attempts> attempts_;
};

}  // namespace hier
