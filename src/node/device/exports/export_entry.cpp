// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/exports/export_entry.hpp"

namespace hier {

ExportWords words_of(const ExportEntry& entry)
{
    const std::uint64_t last = std::uint64_t{static_cast<std::uint32_t>(entry.kind)} << 32 |
                               static_cast<std::uint32_t>(entry.descriptor);
    return {entry.base, entry.length, entry.id, last};
}

std::optional<ExportEntry> parse_export(const ExportWords& words)
{
    const auto kind = static_cast<ExportEntry::Kind>(words[3] >> 32);
    const ExportEntry entry{words[0], words[1], words[2], static_cast<std::int32_t>(words[3]),
                            kind};
    const bool is_range = entry.length > 0 && entry.length <= UINT64_MAX - entry.base;
    const bool is_kind =
        kind == ExportEntry::Kind::segment || kind == ExportEntry::Kind::allocation;
    if (!is_range || !is_kind || entry.descriptor < -1) return std::nullopt;
    return entry;
}

}  // namespace hier
