// SPDX-License-Identifier: BSD-3-Clause
// The export table of another process of this node (export_table.hpp), mapped here. This process
// pulls what it needs: it reads the table and takes descriptors with pidfd_getfd (Linux 5.6). The
// kernel lets only processes do that which may trace the owner. So no other user is in the way, and
// nobody sends anything that this process has to receive.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "node/device/exports/export_table.hpp"

namespace hier {

class PeerTable {
public:
    // The table at this address. It stays mapped as long as this process lives. nullptr: it cannot
    // be mapped, which has been logged, or it is this process's own.
    static PeerTable* open(const ExportTable::Address& address);
    // take_in() of all tables that this process has opened.
    static void take_in_all(int device);

    explicit PeerTable(const ExportTable::Address& address);  // throws SetupError
    PeerTable(const PeerTable&) = delete;
    PeerTable& operator=(const PeerTable&) = delete;
    ~PeerTable() = default;

    // A number of the owner alone.
    std::uint64_t process() const { return address_.memory.inode; }
    std::int32_t process_id() const { return address_.process; }

    // Takes in what has changed: new segments are imported, others dropped, and mappings of freed
    // allocations marked. `device`: any device that this process uses; -1: nothing is imported.
    void take_in(int device);
    // The version of the entries now.
    std::uint64_t version() const;
    // Returns a copy of the owner's file, or -1 with errno. The file may be another one if version()
    // has changed meanwhile.
    int pull(int descriptor) const;
    // Does pull() work? Empty: yes.
    std::string try_pull() const;

    // What the owner says of this process's own table.
    std::uint64_t seen() const;
    std::uint64_t losses() const;

private:
    const ExportMemory& memory() const
    {
        return *reinterpret_cast<const ExportMemory*>(memory_.data());
    }
    const ExportMemory::Seen* own_row() const;
    // False: the owner is changing the table all the time.
    bool read(std::uint64_t& version);
    void mark_freed();

    ExportTable::Address address_;
    SharedMemory memory_;
    std::mutex mutex_;
    std::uint64_t taken_in_ = 0;            // this version
    std::vector<ExportEntry> entries_;      // that read() has found
    std::vector<ExportEntry> allocations_;  // that are not freed, when last looked
};

// The tables of a node's ranks, by node rank. nullptr: this rank itself, or a table that cannot be
// mapped.
struct PeerTables {
    std::vector<PeerTable*> all;
    bool can_pull = false;  // each rank can take descriptors of every other one
};

}  // namespace hier
