// SPDX-License-Identifier: BSD-3-Clause
// Parts of puts that another rank of the node describes in a ring, and published blocks. If there is
// no fault, the bytes are copied as the receiver copies them.
#include <array>

#include "node/entry_ring.hpp"
#include "node/peer_words.hpp"
#include "test/fuzz/target.hpp"

namespace hier::fuzz {
namespace {

constexpr std::size_t cell_bytes = 64, receive_bytes = 1000, space = 256;

void copy(const CellHeader& header)
{
    if (fault_of(header, cell_bytes, receive_bytes) != nullptr) return;
    const std::vector<std::byte> cell(cell_bytes);
    std::vector<std::byte> receive(receive_bytes);
    std::memcpy(receive.data() + header.offset, cell.data(), header.length);
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
    // Of a lent block there is an address.
    const bool is_lent = length % 2 == 1;
    const std::size_t stored = is_lent ? sizeof(std::uint64_t) : length;
    if (fault_of_block(at, stored, offset, length, space, receive_bytes) != nullptr) return;
    const std::vector<std::byte> published(space), lent(is_lent ? length : 0);
    std::vector<std::byte> receive(receive_bytes);
    std::uint64_t address = 0;
    if (is_lent) std::memcpy(&address, published.data() + at, sizeof address);
    std::memcpy(receive.data() + offset, is_lent ? lent.data() : published.data() + at, length);
}

void run(Bytes bytes)
{
    Input input(bytes);
    copy(input.take<CellHeader>());
    const auto entry = input.take<DeviceCellEntry>();
    copy(entry);
    const auto at = input.take<std::uint64_t>(), offset = input.take<std::uint64_t>();
    copy_block(at, offset, input.take<std::uint64_t>());

    constexpr std::size_t count = 4;
    using Ring = EntryRing<DeviceCellEntry>;
    const auto freed = input.take<std::uint64_t>(), read = input.take<std::uint64_t>(),
               arrived = input.take<std::uint64_t>();
    if (Ring::can_hold(read, freed, arrived, count))
        require(arrived - read <= count && read - freed <= count, "a ring holds its entries");
    std::vector<std::uint64_t> sender(Ring::sender_bytes(count) / sizeof(std::uint64_t)), done(1);
    Ring ring(reinterpret_cast<std::byte*>(sender.data()),
              reinterpret_cast<std::byte*>(done.data()), count);
    ring.write(read, entry);
    require(seed(ring.read(read)) == seed(entry), "what is written is read");
}

std::vector<std::string> seeds()
{
    return {seed(CellHeader{0, 64}) + seed(DeviceCellEntry{936, 64, 1}) +
            seed(std::array<std::uint64_t, 6>{16, 900, 100, 5, 6, 7})};
}

}  // namespace

const Target fragments{"fragments", run, seeds};

}  // namespace hier::fuzz
