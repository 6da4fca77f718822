// SPDX-License-Identifier: BSD-3-Clause
// An entry of another process's export table.
#include "node/device/exports/export_entry.hpp"
#include "test/fuzz/target.hpp"

namespace hier::fuzz {
namespace {

void run(Bytes bytes)
{
    const auto words = Input(bytes).take<ExportWords>();
    const auto entry = parse_export(words);
    if (!entry) return;
    require(entry->length > 0 && entry->end() > entry->base, "memory ends behind its begin");
    require(entry->descriptor >= -1, "a descriptor is a number");
    require(words_of(*entry) == words, "what is read is written");
}

std::vector<std::string> seeds()
{
    return {seed(words_of({4096, 2 << 20, 7, 12})),
            seed(words_of({4096, 2 << 20, 7, -1, ExportEntry::Kind::allocation}))};
}

}  // namespace

const Target exports{"exports", run, seeds};

}  // namespace hier::fuzz
