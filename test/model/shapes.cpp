// SPDX-License-Identifier: BSD-3-Clause
#include "shapes.hpp"

#include <algorithm>
#include <numeric>

namespace hier::model {

std::vector<int> nodes_of_sizes(const std::vector<int>& sizes)
{
    std::vector<int> node_of_rank;
    for (std::size_t n = 0; n < sizes.size(); n++) {
        node_of_rank.insert(node_of_rank.end(), static_cast<std::size_t>(sizes[n]),
                            static_cast<int>(n));
    }
    return node_of_rank;
}

std::vector<std::vector<int>> compositions(int ranks)
{
    if (ranks == 0) return {{}};
    std::vector<std::vector<int>> all;
    for (int first = 1; first <= ranks; first++) {
        for (auto rest : compositions(ranks - first)) {
            rest.insert(rest.begin(), first);
            all.push_back(std::move(rest));
        }
    }
    return all;
}

Topology shuffled(std::vector<int> node_of_rank, std::mt19937& random)
{
    std::shuffle(node_of_rank.begin(), node_of_rank.end(), random);
    std::vector<int> order(node_of_rank.size());
    for (int& o : order) o = static_cast<int>(random() % 4);
    return Topology(node_of_rank, order);
}

std::vector<Extent> uneven_shards(int ranks, std::size_t most, std::mt19937& random)
{
    std::vector<std::size_t> order(static_cast<std::size_t>(ranks));
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Extent> shards(order.size());
    std::size_t offset = 0;
    for (const std::size_t r : order) {
        offset += random() % 3;
        shards[r] = {offset, random() % 3 == 0 ? 0 : random() % (most + 1)};
        offset += shards[r].length;
    }
    return shards;
}

std::vector<bool> some_of(int ranks, std::mt19937& random)
{
    std::vector<bool> some(static_cast<std::size_t>(ranks));
    for (std::size_t r = 0; r < some.size(); r++) some[r] = random() % 2 == 0;
    return some;
}

std::vector<bool> none_some_or_all_of(int ranks, std::mt19937& random)
{
    const auto which = random() % 3;
    if (which == 1) return some_of(ranks, random);
    return std::vector<bool>(static_cast<std::size_t>(ranks), which == 2);
}

static std::string ranks_of(const std::vector<bool>& some)
{
    std::string out;
    for (std::size_t r = 0; r < some.size(); r++) out += some[r] ? " " + std::to_string(r) : "";
    return out.empty() ? " none" : out;
}

static std::string text_of(const SpreadCosts& costs)
{
    std::string out;
    for (const std::size_t cost : {costs.unit, costs.start, costs.put, costs.grain})
        out += " " + std::to_string(cost);
    return ", spread" + out + (costs.by_cores ? " by cores" : "");
}

std::string judge(const Topology& topology, const std::vector<Call>& calls,
                  const Schedule& schedule)
{
    Verdict verdict = inspect(topology, calls);
    if (!verdict) verdict = run(topology, calls, schedule);
    if (!verdict) return "";
    std::string out = "nodes of ranks " + describe(topology) + ": " + verdict.text();
    for (const Call& call : calls) {
        out += std::string("; ") + to_string(call.route);
        out += ", chunk " + std::to_string(call.chunk) + text_of(call.spread) +
               (call.publish ? ", publish" : "") +
               (!call.is_mixed() ? "" : " but ranks" + ranks_of(call.announces)) +
               (call.own_whole ? ", own shards whole, shards" : ", shards");
        for (const Extent s : call.shards) {
            out += " " + std::to_string(s.offset) + "+" + std::to_string(s.length);
        }
        out += ", in place" + ranks_of(call.in_place) + ", bounce" + ranks_of(call.bounce);
    }
    return out + "; schedule " + std::to_string(static_cast<int>(schedule.kind)) + ", seed " +
           std::to_string(schedule.seed);
}

std::string describe(const Topology& topology)
{
    std::string out;
    for (int r = 0; r < topology.size(); r++) {
        out += (r > 0 ? " " : "") + std::to_string(topology.node_of(r));
    }
    return out;
}

}  // namespace hier::model
