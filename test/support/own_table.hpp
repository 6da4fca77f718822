// SPDX-License-Identifier: BSD-3-Clause
// The export table of this process, as another process sees it.
#pragma once

#include "node/device/exports/export_table.hpp"

namespace hier::test {

inline const ExportMemory& own_table()
{
    static const SharedMemory mapped =
        SharedMemory::open_to_read(ExportTable::instance().address().memory, sizeof(ExportMemory));
    return *reinterpret_cast<const ExportMemory*>(mapped.data());
}

inline ExportEntry entry_at(std::size_t i)
{
    ExportWords words;
    for (std::size_t k = 0; k < words.size(); k++) words[k] = own_table().entries[i][k];
    return parse_export(words).value_or(ExportEntry{});
}

}  // namespace hier::test
