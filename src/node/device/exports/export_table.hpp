// SPDX-License-Identifier: BSD-3-Clause
// What this process exports to the other processes of its node: VMM segments and whole allocations
// of device memory. The table lies in shared memory that peers can only read (peer_table.hpp).
//
//   version | count | seen: process 0, 1, ...          | entries 0, 1, ...
//                     {process, version, losses} each    {base, length, id, descriptor and kind}
//
// Every word has one writer, the owner of the table. A version that is odd means that the owner is
// changing the entries. A row of `seen` is the owner's answer to a peer: up to which version it has
// taken in the peer's table, and how often it has missed a segment.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "node/device/exports/export_entry.hpp"
#include "node/shared_memory.hpp"

namespace hier {

struct ExportMemory {
    static constexpr std::size_t max_entries = 4096;
    static constexpr std::size_t max_peers = 512;
    using Word = std::atomic<std::uint64_t>;
    struct Seen {
        Word process, version, losses;
    };

    Word version;
    Word count;
    std::array<Seen, max_peers> seen;
    std::array<std::array<Word, 4>, max_entries> entries;
};

class ExportTable {
public:
    // By the address other processes of the node find the table.
    struct Address {
        SharedMemory::Address memory;
        std::int32_t process = 0;  // process id; 0: this process has no table
        std::int32_t descriptor = -1;
    };

    static ExportTable& instance();
    ExportTable(const ExportTable&) = delete;
    ExportTable& operator=(const ExportTable&) = delete;
    ~ExportTable() = default;

    const Address& address() const { return address_; }
    // Why there is no table. Empty: there is one.
    const std::string& refusal() const { return refusal_; }

    // Puts in entries and then takes out others, as one change. An entry replaces one of the same
    // memory. Returns the version with the change; 0: there is no room, and nothing was changed.
    std::uint64_t change(std::span<const ExportEntry> put, std::span<const ExportEntry> gone);

    // Says what this process has taken in of the table of `process`, and that a segment was missing
    // there. False: there is no room for another process.
    bool say_seen(std::uint64_t process, std::uint64_t version);
    bool say_lost(std::uint64_t process);

private:
    ExportTable();
    ExportMemory& memory() const { return *reinterpret_cast<ExportMemory*>(memory_.data()); }
    ExportMemory::Seen* row_of(std::uint64_t process);

    std::mutex mutex_;
    SharedMemory memory_;  // its descriptor stays open as long as the process lives
    Address address_;
    std::string refusal_;
    std::vector<ExportEntry> entries_;  // as in the shared memory
};

}  // namespace hier
