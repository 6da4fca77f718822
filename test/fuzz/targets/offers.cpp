// SPDX-License-Identifier: BSD-3-Clause
// What another rank of the node says of its receive buffer.
#include "node/peer_words.hpp"
#include "test/fuzz/target.hpp"

namespace hier::fuzz {
namespace {

constexpr std::size_t lent = 1 << 20;

void run(Bytes bytes)
{
    const auto offer = Input(bytes).take<NodeOffer>();
    if (fault_of(offer, lent) != nullptr) return;
    const ExportedMemory& memory = offer.memory;
    require(offer.address + offer.length >= offer.address, "a buffer ends behind its begin");
    if (offer.path == WritePath::by_device)
        require(offer.address >= memory.base &&
                    offer.address + offer.length <= memory.base + memory.length,
                "a buffer lies in its allocation");
    if (offer.path == WritePath::by_device_cells)
        require(memory.length >= lent, "all cells lie in the memory");
    require(is_direct(offer.path) || offer.path == WritePath::by_cells ||
                offer.path == WritePath::by_device_cells,
            "the way is known");
}

std::vector<std::string> seeds()
{
    NodeOffer offer{100, 4096, 100, 0, 0, 0, WritePath::by_cpu, {}, 0};
    std::vector<std::string> all{seed(offer)};
    offer.memory = {4000, 1000, 7, 12, 0, {}};
    offer.path = WritePath::by_device;
    all.push_back(seed(offer));
    offer.memory.length = lent;
    offer.path = WritePath::by_device_cells;
    all.push_back(seed(offer));
    return all;
}

}  // namespace

const Target offers{"offers", run, seeds};

}  // namespace hier::fuzz
