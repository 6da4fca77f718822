// How a team's allgathers travel, and what the user is told of it.
#include <algorithm>

#include "error.hpp"
#include "log.hpp"
#include "team.hpp"

namespace hier {
namespace {

std::string text_of(double seconds)
{
    return seconds < 1e-3 ? format("%.3g us", seconds * 1e6) : format("%.3g ms", seconds * 1e3);
}

const char* to_string(Route route) { return route == Route::ring ? "ring" : "direct puts"; }

}  // namespace

AllgatherWish Team::wish(std::size_t bytes_per_rank) const
{
    AllgatherWish wish;
    const std::size_t countable =
        bytes_per_rank / (Signal::max_count / static_cast<std::size_t>(topology_.size())) + 1;
    wish.least_chunk = std::max(wish.least_chunk, countable);
    if (config_.chunk_bytes > 0) wish.chunk = std::max(config_.chunk_bytes, countable);
    if (config_.inter != HIER_INTER_AUTO)
        wish.route = config_.inter == HIER_INTER_RING ? Route::ring : Route::direct;
    wish.depth = config_.depth;
    return wish;
}

AllgatherChoice Team::choose(std::size_t bytes_per_rank) const
{
    return cost_->choose(bytes_per_rank, wish(bytes_per_rank));
}

// Once for each size, and again only for one that has been forgotten.
void Team::report(const Call& call, const AllgatherChoice& choice) const
{
    if (rank_ != 0 || !log_enabled(HIER_LOG_INFO) || topology_.nodes() == 1) return;
    const std::size_t bytes = call.bytes_per_rank;
    AllgatherWish other = wish(bytes);
    std::string why = "coll_hier_inter";
    if (!other.route) {
        other.route = choice.route == Route::ring ? Route::direct : Route::ring;
        why = format("%s: %s", to_string(*other.route),
                     text_of(cost_->choose(bytes, other).seconds).c_str());
    }
    log(HIER_LOG_INFO,
        "%s: %zu bytes a rank: %s, chunks of %zu bytes, %d in flight%s%s; expected %s (network %s, "
        "links %s; %s)",
        name_.c_str(), bytes, to_string(choice.route), choice.chunk, choice.depth,
        is_eager(bytes) ? ", eager" : "", call.has_landing ? ", through pinned memory" : "",
        text_of(choice.seconds).c_str(), text_of(choice.network).c_str(),
        text_of(choice.links).c_str(), why.c_str());
}

}  // namespace hier
