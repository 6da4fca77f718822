// SPDX-License-Identifier: BSD-3-Clause
// Device memory of other processes of this node, mapped here. Mappings are kept from call to call,
// because to open one takes some 100 us to 100 ms.
//
// A mapping is of one allocation. Memory that the owner frees and allocates again at the same
// address has another id. Then every old mapping that overlaps the new memory is closed before the
// new mapping is opened. Mappings of memory that the owner has freed are closed too, because such
// memory stays taken as long as somebody maps it.
//
// To close a mapping waits for all streams of the device. So the mappings of a call stay open until
// the call ends, and others stay open until there is a reason to close them.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <span>
#include <vector>

#include "hier/gpu.hpp"
#include "node/device/exports/export_entry.hpp"
#include "node/peer_words.hpp"

namespace hier {

class PeerMappings {
public:
    static PeerMappings& instance();

    struct Mapping {
        ExportedMemory memory;
        int device;       // copies from and to the memory
        std::byte* base;  // here; null: the memory cannot be mapped
        int users;
        bool is_stale;  // the owner has other memory there now
        bool is_freed;  // the owner says so
    };

    // Gives a mapping that stays until release(). There are three kinds of errors:
    //
    // - The runtime refuses, because there may be no way between the GPUs. Later attempts for this
    //   memory fail without a question to the runtime.
    // - The runtime lacks memory. The next attempt asks again.
    // - A mapping of the memory that lay there before is still in use. Then the runtime might return
    //   the old mapping, because ROCm's handles consist of owner and address.
    Status acquire(const ExportedMemory& memory, int device, Mapping*& mapping);
    void release(Mapping* mapping);
    // Is the memory mapped already, so that acquire() opens no new mapping?
    bool has(const ExportedMemory& memory, int device);
    // These allocations are gone. Their mappings stay until another one has to be opened. To close
    // a mapping waits for kernels, and one of these may wait for a rank that is in a call with this
    // one.
    void note_freed(std::int32_t owner, std::span<const ExportEntry> freed);
    // Closes all mappings that are not in use.
    void clear();
    std::size_t size();

    // Beyond this number the mapping that was used longest ago is closed.
    static constexpr std::size_t max_mappings = 256;
    // If at least so many bytes of mapped memory have been freed, the next acquire() closes their
    // mappings.
    static constexpr std::uint64_t max_freed = 256 << 20;
    // If a device has refused memory of a process this often, and never mapped any, there seems to
    // be no way between them. From then on only one in `asked_again` attempts is made.
    static constexpr int max_refusals = 3;
    static constexpr unsigned asked_again = 64;

private:
    using Iterator = std::list<Mapping>::iterator;
    Iterator close(Iterator mapping);
    bool close_overlapping(const ExportedMemory& memory);  // false: a mapping is in use
    void close_oldest();
    void close_freed();

    // Attempts of a device to map memory of a process.
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
    std::list<Mapping> mappings_;  // the last one used is first
    std::vector<Attempts> attempts_;
};

}  // namespace hier
