// SPDX-License-Identifier: BSD-3-Clause
#include "team/tracing.hpp"

#include "base/error.hpp"
#include "net/network.hpp"

namespace hier {

std::unique_ptr<Tracer> make_tracer(const TeamSetup& setup, int rank)
{
    const hier_config& config = setup.config;
    const Topology& topology = setup.topology;
    if (config.trace == nullptr || config.trace[0] == '\0') return nullptr;
    std::string nodes;
    for (int n = 0; n < topology.nodes(); n++)
        nodes += (n > 0 ? " " : "") + std::to_string(topology.ranks_on(n).size());
    std::string header =
        format("# by,%s, %s\n# communicator,%s\n", config.caller == nullptr ? "" : config.caller,
               network_library().c_str(), setup.name.c_str());
    header += format("# ranks,%d\n# ranks_on_nodes,%s\n# rails,%d\n", topology.size(),
                     nodes.c_str(), topology.rails());
    header += format("# rank,%d\n# node,%d\n# local,%d\n# rail,%d\n", rank, topology.node_of(rank),
                     topology.local_of(rank), topology.rail_of(rank));
    header += format("# intra,%s\n# inter,%s\n", setup.node->name(),
                     setup.rail ? setup.rail->traits().name.c_str() : "");
    return std::make_unique<Tracer>(
        Tracer::Setting{.prefix = config.trace,
                        .team = setup.name,
                        .rank = rank,
                        .call = static_cast<std::uint64_t>(config.trace_call),
                        .complains = topology.local_of(rank) == 0,
                        .header = std::move(header)});
}

std::string describe_call(const TeamSetup& setup, const PreparedProgram& prepared)
{
    const ProgramKey& key = prepared.key;
    const Choice& choice = prepared.choice;
    return format("# bytes_per_rank,%zu\n# chunk_bytes,%zu\n# depth,%d\n# route,%s\n# eager,%d\n"
                  "# publish,%d\n# in_place,%d\n# bounce,%d\n",
                  key.bytes, choice.chunk, choice.depth, setup.rail ? to_string(choice.route) : "",
                  choice.eager ? 1 : 0, key.publish ? 1 : 0, key.in_place ? 1 : 0,
                  key.has_bounce ? 1 : 0);
}

}  // namespace hier
