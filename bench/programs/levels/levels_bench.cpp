// SPDX-License-Identifier: BSD-3-Clause
#include "levels_bench.hpp"

#include "bench/lib/program/agree.hpp"
#include "bench/lib/program/program.hpp"
#include "bench/lib/timing/iterations.hpp"
#include "bench/lib/timing/timing.hpp"

#include <algorithm>
#include <climits>

namespace bench {
namespace {

constexpr long validated_before = 2;

}  // namespace

double LevelsMeasurement::overlap() const
{
    const double slower = std::max(network.slowest_rank.median, links.slowest_rank.median);
    const double both = together.slowest_rank.median;
    const bool known = links.exists && network.exists && both > 0.0;
    return known ? slower / both : 0.0;
}

std::optional<std::uint64_t> LevelsMeasurement::served() const
{
    auto fewest = together.served;
    for (const PartFigures* part : {&network, &links}) {
        if (part->exists) {
            fewest = std::min(fewest, part->served);  // nullopt is less than any number
        }
    }
    return fewest;
}

// On one host all ranks of a rail would be one node. So hier cuts the rails' hosts into nodes of
// one rank. The communicator of a node is not cut at all.
LevelsBench::LevelsBench(MPI_Comm comm, const Layout& layout, const Options& options,
                         const Memories& memories, const Counter& counter, const Control* cut)
    : comm_(comm), options_(options), memories_(memories), counter_(counter),
      cut_(cut), turns_{Turn(comm, layout, Part::network, 1), Turn(comm, layout, Part::links, 0),
                        Turn(comm, layout, Part::together, options.ranks_per_node)}
{
}

std::string LevelsBench::make_buffers(std::size_t bytes)
{
    std::size_t max_receive = 0;
    std::string reason;
    for (const Turn& turn : turns_) {
        if (turn.level.shard_bytes(bytes) > static_cast<std::size_t>(INT_MAX)) {
            reason = "--sizes: " + std::to_string(bytes) + " bytes a rank are " +
                     std::to_string(turn.level.shard_bytes(bytes)) +
                     " a rank inside a node alone, more than MPI_Allgather counts";
        }
        max_receive = std::max(max_receive, turn.level.receive_bytes(bytes));
    }
    reason = agree_on_failure(comm_, reason);
    if (!reason.empty()) {
        return reason;
    }
    const auto allocations =
        std::make_shared<const Allocations>(memories_, options_.in_place ? 0 : bytes, max_receive);
    for (Turn& turn : turns_) {
        const bool in_place = options_.in_place || turn.level.is_in_place();
        turn.buffers = std::make_unique<Buffers>(turn.level.comm(), allocations,
                                                 turn.level.shard_bytes(bytes), in_place);
        turn.times.clear();
        turn.is_counted = true;
        turn.missed = 0;
    }
    return turns_.back().buffers->complete();
}

double LevelsBench::call(Turn& turn)
{
    // hier reads the variable when it makes a communicator's team. Any call may be the one.
    if (cut_ != nullptr && !cut_->write(turn.ranks_per_node)) {
        give_up("coll_hier_ranks_per_node cannot be set any more");
    }
    const auto before = counter_.read();
    MPI_Barrier(comm_);
    if (!turn.level.has_peers()) {
        return 0.0;
    }
    const double start = MPI_Wtime();
    turn.buffers->call(turn.allgather);
    const double elapsed = MPI_Wtime() - start;
    const auto after = counter_.read();
    turn.is_counted = turn.is_counted && before && after;
    turn.missed += before && after && *after > *before ? 0 : 1;
    return elapsed;
}

std::string LevelsBench::validated_call(Turn& turn)
{
    ++call_number_;
    turn.buffers->prepare(call_number_);
    turn.times.push_back(call(turn));
    const std::string wrong = turn.level.has_peers() ? turn.buffers->check(call_number_) : "";
    return agree_on_failure(comm_, wrong.empty() ? "" : turn.level.name() + (": " + wrong));
}

std::string LevelsBench::validated_round(LevelsMeasurement& result)
{
    ++rounds_;
    ++result.validated;
    std::string failure;
    for (Turn& turn : turns_) {
        if (failure.empty() && turn.level.exists()) {
            failure = validated_call(turn);
        }
    }
    return failure;
}

// Every other round is backwards. So the whole call and the network alone come equally often after
// the links, in which the network has rested, and equally often after a call that used it.
void LevelsBench::round(bool forwards)
{
    ++rounds_;
    for (std::size_t i = 0; i < turns_.size(); ++i) {
        Turn& turn = turns_[forwards ? i : turns_.size() - 1 - i];
        if (turn.level.exists()) {
            turn.times.push_back(call(turn));
        }
    }
}

std::string LevelsBench::timed_rounds(LevelsMeasurement& result)
{
    for (long i = warmup_iterations(options_, result.bytes); i > 0; --i) {
        round(true);
    }
    MPI_Barrier(comm_);
    double elapsed = MPI_Wtime();
    round(true);
    elapsed = MPI_Wtime() - elapsed;
    MPI_Allreduce(MPI_IN_PLACE, &elapsed, 1, MPI_DOUBLE, MPI_MAX, comm_);
    result.iterations = timed_iterations(options_, result.bytes, elapsed);
    for (Turn& turn : turns_) {
        turn.times.clear();
    }
    std::string failure;
    for (long i = 0; i < result.iterations && failure.empty(); ++i) {
        if (options_.validate == Validate::all) {
            failure = validated_round(result);
        } else {
            round(i % 2 == 0);
        }
    }
    return failure;
}

PartFigures LevelsBench::figures(const Turn& turn, long calls)
{
    PartFigures result;
    result.exists = turn.level.exists();
    if (!result.exists) {
        return result;
    }
    result.slowest_rank = find_slowest(comm_, turn.times).statistics;
    std::uint64_t max[2] = {turn.is_counted ? 0U : 1U, turn.missed};
    MPI_Allreduce(MPI_IN_PLACE, max, 2, MPI_UINT64_T, MPI_MAX, comm_);
    if (max[0] == 0) {
        result.served = static_cast<std::uint64_t>(calls) - max[1];
    }
    return result;
}

LevelsMeasurement LevelsBench::measure(std::size_t bytes)
{
    LevelsMeasurement result;
    result.bytes = bytes;
    result.failure = make_buffers(bytes);
    result.usable = result.failure.empty();
    if (!result.usable) {
        return result;
    }
    rounds_ = 0;
    const bool checked = options_.validate != Validate::none;
    for (long i = 0; checked && i < validated_before && result.failure.empty(); ++i) {
        result.failure = validated_round(result);
    }
    if (result.failure.empty()) {
        result.failure = timed_rounds(result);
    }
    const auto timed = static_cast<std::size_t>(result.iterations);
    if (result.failure.empty() && checked) {
        result.failure = validated_round(result);
    }
    if (!result.failure.empty()) {
        return result;
    }
    result.calls = rounds_;
    for (Turn& turn : turns_) {
        turn.times.resize(turn.level.exists() ? timed : 0);  // without the last, checked call
    }
    result.network = figures(turns_[0], rounds_);
    result.links = figures(turns_[1], rounds_);
    result.together = figures(turns_[2], rounds_);
    return result;
}

}  // namespace bench
