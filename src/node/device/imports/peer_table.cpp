// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/imports/peer_table.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "node/device/imports/peer_mappings.hpp"
#include "node/device/imports/peer_vmm_segments.hpp"

#ifndef SYS_pidfd_open  // equal on all architectures
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

namespace hier {
namespace {

struct Opened {
    std::mutex mutex;
    std::map<std::uint64_t, std::unique_ptr<PeerTable>> tables;  // by process
};

Opened& opened()
{
    static Opened all;
    return all;
}

}  // namespace

PeerTable* PeerTable::open(const ExportTable::Address& address)
{
    const std::uint64_t process = address.memory.inode;
    if (address.process <= 0 || process == ExportTable::instance().address().memory.inode)
        return nullptr;
    const std::lock_guard lock(opened().mutex);
    const auto known = opened().tables.find(process);
    if (known != opened().tables.end()) return known->second.get();
    try {
        auto table = std::make_unique<PeerTable>(address);
        return opened().tables.emplace(process, std::move(table)).first->second.get();
    } catch (const SetupError& e) {
        log(HIER_LOG_INFO, "no table of exported device memory: %s", e.what());
        return nullptr;
    }
}

void PeerTable::take_in_all(int device)
{
    const std::lock_guard lock(opened().mutex);
    for (const auto& [process, table] : opened().tables) table->take_in(device);
}

PeerTable::PeerTable(const ExportTable::Address& address)
    : address_(address), memory_(SharedMemory::open_to_read(address.memory, sizeof(ExportMemory)))
{
}

std::uint64_t PeerTable::version() const
{
    return memory().version.load(std::memory_order_acquire);
}

bool PeerTable::read(std::uint64_t& version)
{
    constexpr int max_attempts = 100;
    for (int i = 0; i < max_attempts; i++) {
        version = this->version();
        if (version % 2 != 0) continue;
        const std::uint64_t count = memory().count.load(std::memory_order_relaxed);
        entries_.clear();
        for (std::size_t at = 0; at < std::min(count, ExportMemory::max_entries); at++) {
            ExportWords words;
            for (std::size_t k = 0; k < words.size(); k++)
                words[k] = memory().entries[at][k].load(std::memory_order_relaxed);
            if (const auto entry = parse_export(words)) entries_.push_back(*entry);
        }
        std::atomic_thread_fence(std::memory_order_acquire);
        if (memory().version.load(std::memory_order_relaxed) == version) return true;
    }
    return false;
}

void PeerTable::take_in(int device)
{
    const std::lock_guard lock(mutex_);
    if (version() == taken_in_) return;
    constexpr int max_attempts = 4;
    for (int i = 0; i < max_attempts; i++) {
        std::uint64_t version = 0;
        if (!read(version)) return;
        mark_freed();
        const bool is_whole = PeerVmmSegments::instance().take_in(*this, entries_, version, device);
        if (device < 0) return;
        if (!is_whole) continue;
        if (ExportTable::instance().say_seen(process(), version)) taken_in_ = version;
        return;
    }
}

void PeerTable::mark_freed()
{
    const auto is_gone = [&](const ExportEntry& old) {
        return std::none_of(entries_.begin(), entries_.end(),
                            [&](const ExportEntry& entry) { return entry.is_same(old); });
    };
    std::erase_if(allocations_, [&](const ExportEntry& old) { return !is_gone(old); });
    if (!allocations_.empty()) PeerMappings::instance().note_freed(process_id(), allocations_);
    allocations_.clear();
    std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(allocations_),
                 [](const ExportEntry& e) { return e.kind == ExportEntry::Kind::allocation; });
}

// The process id may belong to another process by now. The owner is alive if the path of its table
// still leads there after the process has been opened.
int PeerTable::pull(int descriptor) const
{
    const int process = static_cast<int>(syscall(SYS_pidfd_open, address_.process, 0));
    if (process < 0) return -1;
    struct stat found {};
    int file = -1;
    int cause = ESRCH;
    if (stat(address_.memory.path.data(), &found) == 0 && found.st_dev == address_.memory.device &&
        found.st_ino == address_.memory.inode) {
        file = static_cast<int>(syscall(SYS_pidfd_getfd, process, descriptor, 0));
        cause = errno;
    }
    close(process);
    errno = cause;
    return file;
}

std::string PeerTable::try_pull() const
{
    const int file = pull(address_.descriptor);
    if (file < 0)
        return format("pidfd_getfd of process %d: %s", static_cast<int>(address_.process),
                      std::strerror(errno));
    struct stat found {};
    const bool is_it = fstat(file, &found) == 0 && found.st_ino == address_.memory.inode;
    close(file);
    return is_it ? "" : "pidfd_getfd gives another file";
}

const ExportMemory::Seen* PeerTable::own_row() const
{
    const std::uint64_t self = ExportTable::instance().address().memory.inode;
    for (const ExportMemory::Seen& row : memory().seen) {
        const std::uint64_t process = row.process.load(std::memory_order_acquire);
        if (process == self) return &row;
        if (process == 0) break;
    }
    return nullptr;
}

std::uint64_t PeerTable::seen() const
{
    const auto* const row = own_row();
    return row != nullptr ? row->version.load(std::memory_order_acquire) : 0;
}

std::uint64_t PeerTable::losses() const
{
    const auto* const row = own_row();
    return row != nullptr ? row->losses.load(std::memory_order_acquire) : 0;
}

}  // namespace hier
