// SPDX-License-Identifier: BSD-3-Clause
// A receive buffer that a rail peer announces: its key and its addresses.
#include "hier/call_shape.hpp"
#include "net/rail_words.hpp"
#include "test/fuzz/target.hpp"

namespace hier::fuzz {
namespace {

void run(Bytes bytes)
{
    const auto announcement = Input(bytes).take<Announcement>();
    if (fault_of(announcement) != nullptr) return;
    const std::vector<std::byte> key(announcement.key.data(),
                                     announcement.key.data() + announcement.key_bytes);
    require(!key.empty(), "a key has bytes");
    const std::uint64_t total = CallShape::total(announcement.shape);
    require(announcement.home <= total &&
                announcement.address + (total - announcement.home) >= announcement.address,
            "a buffer ends behind its begin");
}

std::vector<std::string> seeds()
{
    Announcement one{0x7f0000001000, 0, 4096, 1, 0, 12, {}};
    Announcement full{4096, 7, UINT64_MAX, 2, 1, Announcement::max_key, {}};
    return {seed(one), seed(full)};
}

}  // namespace

const Target announcements{"announcements", run, seeds};

}  // namespace hier::fuzz
