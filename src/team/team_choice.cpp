// SPDX-License-Identifier: BSD-3-Clause
// How a team's allgathers travel, and what the user is told of it.
#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "team/team.hpp"

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

}  // namespace

AllgatherConstraints Team::constraints(std::size_t bytes_per_rank) const
{
    AllgatherConstraints constraints;
    const std::size_t countable =
        bytes_per_rank / (Signal::max_count / static_cast<std::size_t>(topology_.size())) + 1;
    constraints.min_chunk = std::max(constraints.min_chunk, countable);
    if (config_.chunk_bytes > 0) constraints.chunk = std::max(config_.chunk_bytes, countable);
    constraints.route = forced_route(config_.inter);
    constraints.depth = config_.depth;
    constraints.eager_bytes = config_.eager_bytes;
    return constraints;
}

AllgatherChoice Team::choose(std::size_t bytes_per_rank) const
{
    for (const Prepared& p : prepared_)
        if (p.call.bytes_per_rank == bytes_per_rank) return p.choice;
    return cost_->choose(bytes_per_rank, constraints(bytes_per_rank));
}

// A power of two a rank: from there on the model finds no size at which the others are faster.
std::size_t Team::min_bytes() const
{
    constexpr std::size_t most = 4 << 10;  // beyond, the others were never seen to be faster
    std::size_t least = 1;
    for (std::size_t bytes = 1; bytes <= most; bytes *= 2) {
        AllgatherConstraints equal_on_all = constraints(bytes);
        equal_on_all.depth = 0;  // each rank's own affair
        if (cost_->choose(bytes, equal_on_all).seconds > cost_->fallback(bytes)) least = 2 * bytes;
    }
    return least == 1 ? 0 : least * static_cast<std::size_t>(topology_.size());
}

// Once for each size.
void Team::report(const Call& call, const AllgatherChoice& choice)
{
    if (rank_ != 0 || !log_enabled(HIER_LOG_INFO)) return;
    const std::size_t bytes = call.bytes_per_rank;
    if (!told_.emplace(bytes, call.has_bounce, call.is_on_device).second) return;
    if (topology_.nodes() == 1) {
        log(HIER_LOG_INFO, "%s: %zu bytes a rank: %s; expected %s", name_.c_str(), bytes,
            choice.publish ? "published inside the node" : "to each rank of the node",
            text_of(choice.seconds).c_str());
        return;
    }
    const AllgatherConstraints constrained = constraints(bytes);
    std::string why = constrained.route ? "; as coll_hier_inter says" : "";
    for (const Route route : all_routes) {
        const bool is_same = topology_.nodes() == 2 && route == Route::ring;  // as direct puts
        if (constrained.route || route == choice.route || is_same ||
            !cost_->is_choice(bytes, route, constrained))
            continue;
        AllgatherConstraints other = constrained;
        other.route = route;
        why += format("%s%s: %s", why.empty() ? "; " : ", ", text_of(route).c_str(),
                      text_of(cost_->choose(bytes, other).seconds).c_str());
    }
    const bool are_added = choice.route == Route::bundles;
    log(HIER_LOG_INFO,
        "%s: %zu bytes a rank: %s, chunks of %zu bytes, %d in flight%s%s%s; expected %s "
        "(network %s%s links %s%s)",
        name_.c_str(), bytes, text_of(choice.route).c_str(), choice.chunk, choice.depth,
        choice.eager ? ", eager" : "", choice.publish ? ", published inside a node" : "",
        !call.has_bounce    ? ""
        : call.is_on_device ? ", through pinned memory"
                            : ", through memory that the network reaches",
        text_of(choice.seconds).c_str(), text_of(choice.network).c_str(),
        are_added ? " and then" : ",", text_of(choice.links).c_str(), why.c_str());
}

}  // namespace hier
