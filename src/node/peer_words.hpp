// SPDX-License-Identifier: BSD-3-Clause
// Checks of what other ranks of the node write into shared memory. Pure: any words may come. Each
// function takes a copy, because the other process can change the original at any time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hier/gpu.hpp"
#include "node/node_layout.hpp"

namespace hier {

// How the others may write into a rank's receive buffer.
enum class WritePath : std::uint64_t {
    by_cpu,           // process_vm_writev to the buffer's address
    by_cells,         // only through cells of shared memory
    by_device,        // by copy engines, or through cells
    by_segments,      // the same, into VMM segments (peer_vmm_segments.hpp)
    by_device_cells,  // by copy engines into cells of device memory, or through cells
};

// Do the others write into the receive buffer itself?
constexpr bool is_direct(WritePath path)
{
    return path == WritePath::by_cpu || path == WritePath::by_device ||
           path == WritePath::by_segments;
}

// A process describes an allocation to its peers by this, in shared memory.
struct ExportedMemory {
    std::uint64_t base;  // in the owner
    std::uint64_t length;
    std::uint64_t id;
    std::int32_t owner;  // process id
    std::int32_t reserved;
    gpu::IpcHandle handle;
};

// What a rank says of its receive buffer.
struct NodeOffer {
    std::uint64_t shape;  // CallShape
    std::uint64_t address;
    std::uint64_t length;
    std::uint64_t before, after;  // of the same buffer (Region)
    std::uint64_t is_displaced;   // not 0: NodeSegment::displacements says where blocks begin
    WritePath path;
    ExportedMemory memory;  // for by_device the buffer's allocation; for by_device_cells the cells
    std::uint64_t vmm_digest;  // for by_segments; a VmmDigest
};

// What a rank says of its part in a call that may go by kernels (kernel_exchange.hpp).
struct ExchangeOffer {
    std::uint64_t shape;           // CallShape
    std::uint64_t target, length;  // of its block, in the receive buffers
    std::uint64_t device;          // equal exactly for ranks on the same one
    std::uint64_t in_turns;        // not 0: processes get this device in turns
    std::uint64_t kernel;          // the number of the team's next kernel
    ExportedMemory zone;
};

// In front of the bytes of a cell of shared memory (shm_cells.hpp): a part of a put.
struct CellHeader {
    std::uint64_t offset;  // in the receive buffer
    std::uint64_t length;
};

// Each gives nullptr, or says what is wrong.

// `lent`: bytes of the cells that a rank lends.
const char* fault_of(const NodeOffer& offer, std::size_t lent);
const char* fault_of_zone(const ExportedMemory& zone, std::size_t bytes);
// `receive`: bytes of the receive buffer.
const char* fault_of(const CellHeader& header, std::size_t cell_bytes, std::size_t receive);
const char* fault_of(const DeviceCellEntry& entry, std::size_t cell_bytes, std::size_t receive);
// A published block of `length` bytes, of which `stored` bytes begin at `at`, behind its description, in
// `space` bytes.
const char* fault_of_block(std::size_t at, std::size_t stored, std::uint64_t offset,
                           std::uint64_t length, std::size_t space, std::size_t receive);

}  // namespace hier
