// SPDX-License-Identifier: BSD-3-Clause
#include "node/peer_words.hpp"

#include "hier/transport.hpp"

namespace hier {
namespace {

bool is_range(std::uint64_t base, std::uint64_t length) { return length <= UINT64_MAX - base; }

constexpr const char* beyond = "bytes beyond the end of the receive buffer";

}  // namespace

const char* fault_of(const NodeOffer& offer, std::size_t lent)
{
    if (offer.path > WritePath::by_device_cells) return "an unknown way to write into its buffer";
    if (!is_range(offer.address, offer.length) || offer.before > offer.address ||
        !is_range(offer.address + offer.length, offer.after))
        return "a buffer beyond the last address";
    const ExportedMemory& memory = offer.memory;
    const bool is_mapped =
        offer.path == WritePath::by_device || offer.path == WritePath::by_device_cells;
    if (is_mapped && (memory.owner <= 0 || !is_range(memory.base, memory.length)))
        return "an allocation that cannot be one";
    if (offer.path == WritePath::by_device &&
        (offer.address < memory.base ||
         !fits(offer.address - memory.base, offer.length, memory.length)))
        return "a buffer outside its allocation";
    if (offer.path == WritePath::by_device_cells && memory.length < lent)
        return "too little memory for its cells";
    return nullptr;
}

const char* fault_of_zone(const ExportedMemory& zone, std::size_t bytes)
{
    if (zone.owner <= 0 || !is_range(zone.base, zone.length))
        return "an allocation that cannot be one";
    return zone.length < bytes ? "too little memory for its zone" : nullptr;
}

const char* fault_of(const CellHeader& header, std::size_t cell_bytes, std::size_t receive)
{
    if (!fits(header.offset, header.length, receive)) return beyond;
    if (header.length > cell_bytes) return "more bytes than a cell has";
    return nullptr;
}

const char* fault_of(const DeviceCellEntry& entry, std::size_t cell_bytes, std::size_t receive)
{
    if (!fits(entry.offset, entry.length, receive)) return beyond;
    if (entry.length > cell_bytes) return "more bytes than a cell has";
    return nullptr;
}

const char* fault_of_block(std::size_t at, std::size_t stored, std::uint64_t offset,
                           std::uint64_t length, std::size_t space, std::size_t receive)
{
    if (!fits(offset, length, receive)) return beyond;
    if (!fits(at, stored, space)) return "a block beyond the end of its memory";
    return nullptr;
}

}  // namespace hier
