// SPDX-License-Identifier: BSD-3-Clause
// Parts of puts that another rank of the node describes in a ring, and published blocks. If there is
// no fault, the bytes are copied as the receiver copies them.
#include "node/entry_ring.hpp"
#include "test/fuzz/target.hpp"

namespace hier::fuzz {
namespace {

constexpr std::size_t count = 4, cell_bytes = 64, receive_bytes = 1000, space = 256;

void copy(const CellEntry& entry)
{
    if (fault_of(entry, count, cell_bytes, receive_bytes) != nullptr) return;
    const std::vector<std::byte> cells(count * cell_bytes);
    std::vector<std::byte> receive(receive_bytes);
    std::memcpy(receive.data() + entry.offset, cells.data() + entry.cell * cell_bytes,
                entry.length);
}

void copy(const DeviceCellEntry& entry)
{
    if (fault_of(entry, cell_bytes, receive_bytes) != nullptr) return;
    const std::vector<std::byte> cell(cell_bytes);
    std::vector<std::byte> receive(receive_bytes);
    std::memcpy(receive.data() + entry.offset, cell.data(), entry.length);
}

void copy_block(std::size_t at, std::uint64_t offset, std::uint64_t length)
{
    if (fault_of_block(at, offset, length, space, receive_bytes) != nullptr) return;
    const std::vector<std::byte> published(space);
    std::vector<std::byte> receive(receive_bytes);
    std::memcpy(receive.data() + offset, published.data() + at, length);
}

void run(Bytes bytes)
{
    Input input(bytes);
    const auto entry = input.take<CellEntry>();
    copy(entry);
    copy(input.take<DeviceCellEntry>());
    const auto at = input.take<std::uint64_t>(), offset = input.take<std::uint64_t>();
    copy_block(at, offset, input.take<std::uint64_t>());

    using Ring = EntryRing<CellEntry, count>;
    const auto freed = input.take<std::uint64_t>(), read = input.take<std::uint64_t>(),
               arrived = input.take<std::uint64_t>();
    if (Ring::can_hold(read, freed, arrived))
        require(arrived - read <= count && read - freed <= count, "a ring holds its entries");
    const auto ring = std::make_unique<Ring>();
    ring->write(read, entry);
    require(seed(ring->read(read)) == seed(entry), "what is written is read");
}

std::vector<std::string> seeds()
{
    return {seed(CellEntry{0, 64, 3, 1}) + seed(DeviceCellEntry{936, 64, 1}) +
            seed(std::array<std::uint64_t, 6>{16, 900, 100, 5, 6, 7})};
}

}  // namespace

const Target fragments{"fragments", run, seeds};

}  // namespace hier::fuzz
