// SPDX-License-Identifier: BSD-3-Clause
// An entry of an export table (export_table.hpp). Pure: another process may write anything.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace hier {

struct ExportEntry {
    enum class Kind : std::uint32_t { segment = 1, allocation = 2 };

    std::uint64_t base = 0;  // in the owner
    std::uint64_t length = 0;
    std::uint64_t id = 0;
    std::int32_t descriptor = -1;  // of the owner; -1: none is open
    Kind kind = Kind::segment;

    std::uint64_t end() const { return base + length; }
    // The same memory? The descriptor does not matter.
    bool is_same(const ExportEntry& other) const
    {
        return base == other.base && length == other.length && id == other.id && kind == other.kind;
    }
};

// The words of an entry, as they lie in shared memory.
using ExportWords = std::array<std::uint64_t, 4>;
ExportWords words_of(const ExportEntry& entry);
// No value: no process of this program writes such words.
std::optional<ExportEntry> parse_export(const ExportWords& words);

}  // namespace hier
