// SPDX-License-Identifier: BSD-3-Clause
// What a team's traces say of it.
#include "base/error.hpp"
#include "net/ucx/ucx_config.hpp"
#include "node/node_transport.hpp"
#include "team/team.hpp"

namespace hier {

void Team::make_tracer(const hier_bootstrap& bootstrap)
{
    if (config_.trace == nullptr || config_.trace[0] == '\0') return;
    std::string nodes;
    for (int n = 0; n < topology_.nodes(); n++)
        nodes += (n > 0 ? " " : "") + std::to_string(topology_.ranks_on(n).size());
    const std::string team = bootstrap.name == nullptr ? "team" : bootstrap.name;
    std::string header =
        format("# by,%s, UCX %s\n# communicator,%s\n",
               config_.caller == nullptr ? "" : config_.caller, ucx_version_text(), team.c_str());
    header += format("# ranks,%d\n# ranks_on_nodes,%s\n# rails,%d\n", topology_.size(),
                     nodes.c_str(), topology_.rails());
    header += format("# rank,%d\n# node,%d\n# local,%d\n# rail,%d\n", rank_,
                     topology_.node_of(rank_), topology_.local_of(rank_), topology_.rail_of(rank_));
    header += format("# intra,%s\n# inter,%s\n", node_->name(), rail_ ? rail_->name().c_str() : "");
    tracer_ = std::make_unique<Tracer>(
        Tracer::Setting{.prefix = config_.trace,
                        .team = team,
                        .rank = rank_,
                        .call = static_cast<std::uint64_t>(config_.trace_call),
                        .complains = topology_.local_of(rank_) == 0,
                        .header = std::move(header)});
}

Trace* Team::trace_of(const Prepared& prepared)
{
    if (!tracer_ || !tracer_->wants(sequence_)) return nullptr;
    const Call& call = prepared.call;
    const AllgatherChoice& choice = prepared.choice;
    const char* route = !rail_ ? "" : to_string(choice.route);
    return tracer_->begin(
        sequence_, *prepared.program,
        format("# bytes_per_rank,%zu\n# chunk_bytes,%zu\n# depth,%d\n# route,%s\n# eager,%d\n"
               "# publish,%d\n# in_place,%d\n# bounce,%d\n",
               call.bytes_per_rank, choice.chunk, choice.depth, route, choice.eager ? 1 : 0,
               choice.publish ? 1 : 0, call.in_place ? 1 : 0, call.has_bounce ? 1 : 0));
}

}  // namespace hier
