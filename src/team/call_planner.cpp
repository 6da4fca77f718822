// SPDX-License-Identifier: BSD-3-Clause
#include "team/call_planner.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace hier {
namespace {

std::string text_of(double seconds)
{
    return seconds < 1e-3 ? format("%.3g us", seconds * 1e6) : format("%.3g ms", seconds * 1e3);
}

std::string text_of(Route route)
{
    return route == Route::direct ? "direct puts" : to_string(route);
}

std::optional<Route> forced_route(int inter)
{
    switch (inter) {
    case HIER_INTER_DIRECT:
        return Route::direct;
    case HIER_INTER_RING:
        return Route::ring;
    case HIER_INTER_BUNDLES:
        return Route::bundles;
    default:
        return std::nullopt;
    }
}

// As many ranks on each node, side by side?
bool is_even(const Topology& topology)
{
    const std::size_t members = topology.ranks_on(0).size();
    for (int n = 0; n < topology.nodes(); n++) {
        const auto ranks = topology.ranks_on(n);
        const auto [first, last] = std::minmax_element(ranks.begin(), ranks.end());
        if (ranks.size() != members || *last - *first + 1 != static_cast<int>(members))
            return false;
    }
    return true;
}

TunedLayout layout_of(const TeamSetup& setup, const char* collective)
{
    TunedLayout layout;
    layout.collective = collective;
    layout.nodes = setup.topology.nodes();
    layout.ranks_per_node = static_cast<int>(setup.topology.ranks_on(0).size());
    layout.is_on_devices = setup.rates.engines;
    layout.is_virtual = setup.config.ranks_per_node > 0;
    // By the rates, which are equal on all ranks. A rank's own devices may be others.
    if (layout.nodes > 1)
        layout.network =
            setup.rates.nic_gap > 0 ? TunedLayout::Network::tcp : TunedLayout::Network::rdma;
    return layout;
}

}  // namespace

CallPlanner::CallPlanner(const TeamSetup& setup, int rank,
                         std::span<const MakeCollective> collectives, Tally& tally)
    : setup_(setup), rank_(rank), tally_(tally)
{
    const bool is_tuned = setup.tuning != nullptr && is_even(setup.topology);
    for (const MakeCollective make : collectives) {
        collectives_.push_back(make(setup.topology, setup.rates));
        const TunedLayout layout = layout_of(setup, collectives_.back()->name());
        tuned_.push_back(is_tuned ? setup.tuning->find(layout) : nullptr);
        if (setup.tuning != nullptr && tuned_.back() == nullptr && rank == 0)
            log(HIER_LOG_INFO,
                "%s: the tuning file has no layout of %d nodes of %d ranks like these",
                setup.name.c_str(), layout.nodes, layout.ranks_per_node);
    }
}

bool CallPlanner::takes(const Call& call) const
{
    return call.collective < collectives_.size() &&
           collectives_[call.collective]->eligible(call.bytes);
}

Constraints CallPlanner::stated() const
{
    Constraints constraints;
    constraints.max_count = Signal::max_count;
    constraints.chunk = setup_.config.chunk_bytes;
    constraints.route = forced_route(setup_.config.inter);
    constraints.depth = setup_.config.depth;
    constraints.eager_bytes = setup_.config.eager_bytes;
    return constraints;
}

const TunedSize* CallPlanner::tuned_size(std::size_t collective, std::size_t bytes) const
{
    return tuned_[collective] != nullptr ? tuned_[collective]->find(bytes) : nullptr;
}

// A variable that the user has set comes before the file. The limit of eager messages may be its
// default, so `eager = false` holds whatever it says.
Constraints CallPlanner::constraints(std::size_t collective, std::size_t bytes,
                                     BlockSizes sizes) const
{
    constexpr std::size_t page = 4096;
    Constraints constraints = stated();
    // On devices all ranks publish one block, of the same size.
    const bool may_publish = sizes == BlockSizes::equal || !setup_.uses_devices;
    // Pushes of a skewed call take as long as those of its largest block. The file, which was measured
    // with equal blocks, does not know that.
    const bool publishes_skewed =
        may_publish && sizes == BlockSizes::skewed && bytes <= setup_.max_skewed;
    if (!may_publish) constraints.publish = false;
    if (publishes_skewed) constraints.publish = true;
    const TunedSize* tuned = tuned_size(collective, bytes);
    if (tuned == nullptr) return constraints;
    const bool is_route_free = !constraints.route || constraints.route == tuned->route;
    if (!constraints.route) constraints.route = tuned->route;
    if (constraints.chunk == 0 && tuned->chunks > 0 && is_route_free)
        constraints.chunk = ((bytes + tuned->chunks - 1) / tuned->chunks + page - 1) / page * page;
    if (tuned->eager == false && is_route_free) constraints.eager_bytes = 0;
    if (may_publish && !publishes_skewed) constraints.publish = tuned->publish;
    return constraints;
}

Choice CallPlanner::choose(std::size_t collective, std::size_t bytes, BlockSizes sizes) const
{
    const Choice* known = programs_.choice_of(collective, bytes, sizes);
    return known != nullptr
               ? *known
               : collectives_[collective]->choose(bytes, constraints(collective, bytes, sizes));
}

// A power of two for each rank. From there on the model finds no size at which the fallback module
// is faster.
std::size_t CallPlanner::min_bytes(std::size_t collective) const
{
    // Above this the fallback module was never seen to be faster.
    constexpr std::size_t most = 4 << 10;
    // Inside a node Open MPI's messages get slower then, and those of several threads wait for each other. The model knows
    // neither. (2 ranks of 8 B on 16 cores, calls a second: one thread 1,070,000 by tuned and 1,170,000 by hier, two
    // threads 208,000 and 2,150,000.)
    if (setup_.has_threads && setup_.topology.nodes() == 1) return 0;
    if (tuned_[collective] != nullptr && tuned_[collective]->min_bytes)
        return *tuned_[collective]->min_bytes;
    std::size_t least = 1;
    for (std::size_t bytes = 1; bytes <= most; bytes *= 2) {
        Constraints equal_on_all = constraints(collective, bytes, BlockSizes::equal);
        equal_on_all.depth = 0;  // may differ from rank to rank
        const Cost cost = collectives_[collective]->cost(bytes, equal_on_all);
        if (cost.ours > cost.fallback) least = 2 * bytes;
    }
    return least == 1 ? 0 : least * static_cast<std::size_t>(setup_.topology.size());
}

// Teams with GPUs and a network that reaches them are too fast: a part costs some 15 us. They stage
// derived datatypes alone, in memory for all of the call.
std::size_t CallPlanner::staged_blocks(std::size_t collective, Route route) const
{
    const StagedBlocks blocks = collectives_[collective]->staged_blocks(route);
    if (!setup_.uses_devices) return blocks.result;
    return setup_.bounces_devices ? blocks.bounce : 0;
}

// Parts are multiples of a page, and equal but for the last one. So two programs serve them all if
// the blocks are equal.
std::size_t CallPlanner::part_bytes(std::size_t collective, std::size_t bytes) const
{
    constexpr std::size_t page = 4096, least = 256 << 10;
    const std::size_t window = setup_.config.staging_window;
    const std::size_t smallest = std::max(std::min(window, least) / page * page, page);
    if (bytes <= smallest) return bytes;
    const auto cut = [&](std::size_t blocks) {
        if (blocks == 0) return bytes;
        const std::size_t most = std::max(window / blocks / page * page, smallest);
        const std::size_t parts = (bytes + most - 1) / most;
        return parts <= 1 ? bytes : ((bytes + parts - 1) / parts + page - 1) / page * page;
    };
    const std::size_t part = cut(staged_blocks(collective, Route::direct));
    if (!setup_.bounces_devices) return part;
    const Choice choice = choose(collective, part, BlockSizes::equal);
    return choice.route == Route::bundles ? cut(staged_blocks(collective, Route::bundles)) : part;
}

// The last part may be so small that it travels in another way.
bool CallPlanner::takes_displacements(std::size_t collective, std::size_t bytes,
                                      bool are_equal) const
{
    const std::size_t part = part_bytes(collective, bytes), last = bytes % part;
    const auto takes = [&](std::size_t size, BlockSizes sizes) {
        return takes_displacements(collective, choose(collective, size, sizes), are_equal);
    };
    const auto takes_all = [&](BlockSizes sizes) {
        return takes(part, sizes) && (last == 0 || takes(last, sizes));
    };
    return are_equal ? takes_all(BlockSizes::equal)
                     : takes_all(BlockSizes::alike) && takes_all(BlockSizes::skewed);
}

PreparedProgram& CallPlanner::prepare(const ProgramKey& key, const Choice& choice)
{
    PreparedProgram* const known = programs_.find(key);
    tally_.add(known != nullptr ? HIER_STATISTIC_PROGRAM_HITS : HIER_STATISTIC_PROGRAM_MISSES);
    if (known != nullptr) return *known;
    report(key, choice);
    return make_program(key, choice);
}

// Programs of published calls are small, so the last two are never too many.
PreparedProgram& CallPlanner::prepare_instead(const PreparedProgram& running, const ProgramKey& key,
                                              const Choice& choice)
{
    (void)programs_.find(running.key);
    PreparedProgram* const known = programs_.find(key);
    return known != nullptr ? *known : make_program(key, choice);
}

PreparedProgram& CallPlanner::make_program(const ProgramKey& key, const Choice& choice)
{
    Plan plan = collectives_[key.collective]->plan({.rank = rank_,
                                                    .bytes = key.bytes,
                                                    .stride = key.stride,
                                                    .blocks = key.blocks,
                                                    .choice = choice,
                                                    .in_place = key.in_place,
                                                    .has_bounce = key.has_bounce,
                                                    .is_on_device = key.is_on_device,
                                                    .publishes = key.publish});
    auto program = std::make_unique<Program>(std::move(plan), setup_.topology, rank_);
    return programs_.add({key, sizes_of(key.blocks), choice, std::move(program)});
}

// Tells the user once for each size.
void CallPlanner::report(const ProgramKey& key, const Choice& choice)
{
    if (rank_ != 0 || !log_enabled(HIER_LOG_INFO)) return;
    const bool are_equal = key.blocks.empty();
    if (!told_
             .emplace(key.collective, key.stride, key.has_bounce, key.is_on_device, key.publish,
                      are_equal)
             .second)
        return;
    const char* team = setup_.name.c_str();
    const char* up_to = are_equal ? "" : "up to ";
    // The first part stands for all of them.
    const double parts = static_cast<double>(key.stride) / static_cast<double>(key.bytes);
    const auto time_of = [&](double seconds) { return text_of(parts * seconds); };
    const bool is_tuned = tuned_size(key.collective, key.bytes) != nullptr;
    std::string why = is_tuned ? "; as coll_hier_tuning_file says" : "";
    if (!setup_.rail) {
        log(HIER_LOG_INFO, "%s: %s%zu bytes a rank: %s; expected %s%s", team, up_to, key.stride,
            !key.publish                     ? "to each rank of the node"
            : setup_.node->lends(key.stride) ? "lent inside the node"
                                             : "published inside the node",
            time_of(choice.seconds).c_str(), why.c_str());
        return;
    }
    if (stated().route) why += "; as coll_hier_inter says";
    const Constraints constrained = constraints(key.collective, key.bytes, sizes_of(key.blocks));
    for (const Choice& other : collectives_[key.collective]->alternatives(key.bytes, constrained))
        why += format("%s%s: %s", why.empty() ? "; " : ", ", text_of(other.route).c_str(),
                      time_of(other.seconds).c_str());
    const bool are_added = choice.route == Route::bundles;
    log(HIER_LOG_INFO,
        "%s: %s%zu bytes a rank: %s, chunks of %zu bytes, %d in flight%s%s%s; expected %s "
        "(network %s%s links %s%s)",
        team, up_to, key.stride, text_of(choice.route).c_str(), choice.chunk, choice.depth,
        choice.eager ? ", eager" : "", key.publish ? ", published inside a node" : "",
        !key.has_bounce    ? ""
        : key.is_on_device ? ", through pinned memory"
                           : ", through memory that the network reaches",
        time_of(choice.seconds).c_str(), time_of(choice.network).c_str(),
        are_added ? " and then" : ",", time_of(choice.links).c_str(), why.c_str());
}

}  // namespace hier
