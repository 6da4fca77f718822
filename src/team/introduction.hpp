// SPDX-License-Identifier: BSD-3-Clause
// The first message of set-up: what each rank tells all others.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "hier/hier.h"
#include "hier/topology.hpp"
#include "team/group.hpp"

namespace hier {

// Settings that have to be equal on all ranks, so that their plans fit together.
struct AgreedSettings {
    std::uint64_t chunk_bytes;
    std::uint64_t eager_bytes;
    std::uint64_t staging_window;
    std::int32_t ranks_per_node;
    std::int32_t inter;
    std::int32_t intra;
    std::int32_t unused = 0;
};

struct Introduction {
    AgreedSettings settings;
    PeerRecord record;
};
static_assert(std::has_unique_object_representations_v<Introduction>);

// Collective. Returns the records of all ranks. Throws on all ranks if settings differ.
std::vector<PeerRecord> introduce(const Group& team, const hier_config& config);

}  // namespace hier
