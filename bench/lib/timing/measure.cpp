// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include "bench/lib/memory/buffers.hpp"
#include "iterations.hpp"
#include "timing.hpp"

#include <vector>

namespace bench {
namespace {

constexpr long validated_before = 2;
constexpr std::size_t small = 32 * 1024;  // bytes a rank; hier's first larger call makes the team

}  // namespace

Bench::Bench(MPI_Comm comm, const Options& options, const Memories& memories, Allgather& allgather,
             const Counter* counter)
    : comm_(comm), barrier_(comm), options_(options), memories_(memories), allgather_(allgather),
      counter_(counter)
{
}

void Bench::call(const Buffers& buffers)
{
    buffers.call(allgather_);
    ++calls_;
}

// coll/hier makes its team at the 16th small call. So these calls are made before any is counted.
void Bench::settle(const Buffers& buffers)
{
    constexpr int calls = 16;
    for (int i = 0; i < calls && !is_settled_ && buffers.bytes() <= small; ++i) {
        buffers.call(allgather_);
    }
    is_settled_ = true;
}

void Bench::prepare(const Buffers& buffers) { buffers.prepare(++call_number_); }

std::string Bench::check(const Buffers& buffers)
{
    ++validated_;
    return buffers.check(call_number_);
}

std::string Bench::validated_calls(const Turns& turns, long count)
{
    std::string failure;
    for (long i = 0; i < count && failure.empty(); ++i) {
        const Buffers& buffers = next(turns);
        prepare(buffers);
        call(buffers);
        failure = check(buffers);
    }
    return failure;
}

long Bench::choose_iterations(const Turns& turns)
{
    const std::size_t bytes = turns[0].bytes();
    // A library may prepare what it does for a buffer in the first calls with it.
    constexpr long calls_of_each = 3;
    const long warmup = warmup_iterations(options_, bytes) + calls_of_each * (options_.buffers - 1);
    for (long i = 0; i < warmup; ++i) {
        call(next(turns));
    }
    if (options_.iterations > 0) {
        return options_.iterations;
    }
    barrier_();
    const double start = MPI_Wtime();
    call(next(turns));
    call(next(turns));
    double elapsed = (MPI_Wtime() - start) / 2.0;
    MPI_Allreduce(MPI_IN_PLACE, &elapsed, 1, MPI_DOUBLE, MPI_MAX, comm_);
    return timed_iterations(options_, bytes, elapsed);
}

void Bench::timed_loop(const Turns& turns, Measurement& result)
{
    const bool check_each = options_.validate == Validate::all;
    std::vector<double> times(static_cast<std::size_t>(result.iterations));
    for (double& time : times) {
        const Buffers& buffers = next(turns);
        if (check_each) {
            prepare(buffers);
        }
        if (options_.fresh) {
            buffers.renew();
        }
        barrier_();
        const double start = MPI_Wtime();
        call(buffers);
        if (options_.fresh) {
            buffers.look_through();
        }
        time = MPI_Wtime() - start;
        if (check_each && !(result.failure = check(buffers)).empty()) {
            return;
        }
    }
    const SlowestRank slowest = find_slowest(comm_, times);
    result.slowest_rank = slowest.statistics;
    result.mean_of_ranks = slowest.mean_of_ranks;
}

void Bench::back_to_back(const Turns& turns, Measurement& result)
{
    barrier_();
    const double start = MPI_Wtime();
    for (long i = 0; i < result.iterations; ++i) {
        call(next(turns));
    }
    result.loop = (MPI_Wtime() - start) / static_cast<double>(result.iterations);
    MPI_Allreduce(MPI_IN_PLACE, &result.loop, 1, MPI_DOUBLE, MPI_MAX, comm_);
}

Measurement Bench::measure(std::size_t bytes)
{
    Measurement result;
    result.bytes = bytes;
    const Turns turns = Buffers::in_turns(comm_, memories_, options_, bytes);
    result.failure = turns[0].complete();
    if (!result.failure.empty()) {
        result.usable = false;
        return result;
    }
    turns[0].attach(allgather_);
    settle(turns[0]);
    calls_ = validated_ = 0;
    const auto before = read(counter_);
    const bool checked = options_.validate != Validate::none;
    result.failure = validated_calls(turns, checked ? validated_before : 0);
    if (result.failure.empty()) {
        result.iterations = choose_iterations(turns);
        timed_loop(turns, result);
    }
    if (result.failure.empty() && options_.loop) {
        back_to_back(turns, result);
    }
    if (result.failure.empty() && checked) {
        // The loop had no barriers in between, so stale flags would show in this call.
        result.failure = validated_calls(turns, options_.buffers);
    }
    allgather_.detach();
    result.calls = calls_;
    result.validated = validated_;
    result.served = fewest_counted(comm_, counter_, before);
    return result;
}

}  // namespace bench
