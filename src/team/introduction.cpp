// SPDX-License-Identifier: BSD-3-Clause
#include "team/introduction.hpp"

#include "base/error.hpp"
#include "team/placement.hpp"
#include "team/sound.hpp"

namespace hier {
namespace {

const char* first_difference(const AgreedSettings& a, const AgreedSettings& b)
{
    if (a.chunk_bytes != b.chunk_bytes) return "coll_hier_chunk_bytes";
    if (a.eager_bytes != b.eager_bytes) return "coll_hier_eager_bytes";
    if (a.staging_window != b.staging_window) return "coll_hier_staging_window";
    if (a.ranks_per_node != b.ranks_per_node) return "coll_hier_ranks_per_node";
    if (a.inter != b.inter) return "coll_hier_inter";
    if (a.intra != b.intra) return "coll_hier_intra";
    return nullptr;
}

}  // namespace

std::vector<PeerRecord> introduce(const Group& team, const hier_config& config)
{
    const auto all =
        team.collect(Introduction{{config.chunk_bytes, config.eager_bytes, config.staging_window,
                                   config.ranks_per_node, config.inter, config.intra},
                                  own_record(config.device, config.gpu_cpu_access != 0)});
    std::vector<PeerRecord> records;
    for (std::size_t r = 0; r < all.size(); r++) {
        records.push_back(all[r].record);
        const char* differs = first_difference(all[0].settings, all[r].settings);
        if (differs == nullptr) continue;
        const std::string cause = format(
            "%s differs between rank 0 and rank %zu; give all ranks the same value", differs, r);
        // All ranks see the difference. One of them logs it.
        if (team.rank() == 0) throw SetupError(cause);
        throw KnownFailure(cause);
    }
    require_sound(team, records, "itself");
    return records;
}

}  // namespace hier
