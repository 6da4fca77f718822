// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/exports/export_table.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/error.hpp"

namespace hier {

ExportTable& ExportTable::instance()
{
    static ExportTable table;
    return table;
}

ExportTable::ExportTable()
{
    try {
        memory_ = SharedMemory::create_anonymous(sizeof(ExportMemory));
        address_ = {memory_.address(), static_cast<std::int32_t>(getpid()), memory_.descriptor()};
    } catch (const SetupError& e) {
        refusal_ = e.what();
    }
}

std::uint64_t ExportTable::change(std::span<const ExportEntry> put,
                                  std::span<const ExportEntry> gone)
{
    const std::lock_guard lock(mutex_);
    if (address_.process == 0) return 0;
    std::vector<ExportEntry> entries = entries_;
    const auto find = [&](const ExportEntry& entry) {
        return std::find_if(entries.begin(), entries.end(),
                            [&](const ExportEntry& each) { return each.is_same(entry); });
    };
    for (const ExportEntry& entry : put) {
        const auto known = find(entry);
        if (known != entries.end()) {
            *known = entry;
        } else {
            entries.push_back(entry);
        }
    }
    for (const ExportEntry& entry : gone) {
        const auto known = find(entry);
        if (known != entries.end()) entries.erase(known);
    }
    if (entries.size() > ExportMemory::max_entries) return 0;
    entries_ = std::move(entries);

    ExportMemory& to = memory();
    const std::uint64_t version = to.version.load(std::memory_order_relaxed);
    to.version.store(version + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    to.count.store(entries_.size(), std::memory_order_relaxed);
    for (std::size_t i = 0; i < entries_.size(); i++) {
        const ExportWords words = words_of(entries_[i]);
        for (std::size_t k = 0; k < words.size(); k++)
            to.entries[i][k].store(words[k], std::memory_order_relaxed);
    }
    to.version.store(version + 2, std::memory_order_release);
    // The caller may close descriptors now. A peer that gets another file under such a number sees
    // the new version too.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return version + 2;
}

ExportMemory::Seen* ExportTable::row_of(std::uint64_t process)
{
    if (address_.process == 0) return nullptr;
    for (ExportMemory::Seen& row : memory().seen) {
        const std::uint64_t known = row.process.load(std::memory_order_relaxed);
        if (known == process) return &row;
        if (known != 0) continue;
        row.process.store(process, std::memory_order_release);
        return &row;
    }
    return nullptr;
}

bool ExportTable::say_seen(std::uint64_t process, std::uint64_t version)
{
    const std::lock_guard lock(mutex_);
    ExportMemory::Seen* const row = row_of(process);
    if (row != nullptr) row->version.store(version, std::memory_order_release);
    return row != nullptr;
}

bool ExportTable::say_lost(std::uint64_t process)
{
    const std::lock_guard lock(mutex_);
    ExportMemory::Seen* const row = row_of(process);
    if (row != nullptr) row->losses.fetch_add(1, std::memory_order_release);
    return row != nullptr;
}

}  // namespace hier
