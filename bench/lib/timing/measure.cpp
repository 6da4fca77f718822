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

std::string Bench::validated_calls(const Buffers& buffers, long count)
{
    std::string failure;
    for (long i = 0; i < count && failure.empty(); ++i) {
        prepare(buffers);
        call(buffers);
        failure = check(buffers);
    }
    return failure;
}

long Bench::choose_iterations(const Buffers& buffers)
{
    const long warmup = warmup_iterations(options_, buffers.bytes());
    for (long i = 0; i < warmup; ++i) {
        call(buffers);
    }
    if (options_.iterations > 0) {
        return options_.iterations;
    }
    barrier_();
    const double start = MPI_Wtime();
    call(buffers);
    call(buffers);
    double elapsed = (MPI_Wtime() - start) / 2.0;
    MPI_Allreduce(MPI_IN_PLACE, &elapsed, 1, MPI_DOUBLE, MPI_MAX, comm_);
    return timed_iterations(options_, buffers.bytes(), elapsed);
}

void Bench::timed_loop(const Buffers& buffers, Measurement& result)
{
    const bool check_each = options_.validate == Validate::all;
    std::vector<double> times(static_cast<std::size_t>(result.iterations));
    for (double& time : times) {
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

void Bench::back_to_back(const Buffers& buffers, Measurement& result)
{
    barrier_();
    const double start = MPI_Wtime();
    for (long i = 0; i < result.iterations; ++i) {
        call(buffers);
    }
    result.loop = (MPI_Wtime() - start) / static_cast<double>(result.iterations);
    MPI_Allreduce(MPI_IN_PLACE, &result.loop, 1, MPI_DOUBLE, MPI_MAX, comm_);
}

Measurement Bench::measure(std::size_t bytes)
{
    Measurement result;
    result.bytes = bytes;
    const Buffers buffers(comm_, memories_, bytes, options_.in_place, options_.blocks);
    result.failure = buffers.complete();
    if (!result.failure.empty()) {
        result.usable = false;
        return result;
    }
    buffers.attach(allgather_);
    settle(buffers);
    calls_ = validated_ = 0;
    const auto before = read(counter_);
    const bool checked = options_.validate != Validate::none;
    result.failure = validated_calls(buffers, checked ? validated_before : 0);
    if (result.failure.empty()) {
        result.iterations = choose_iterations(buffers);
        timed_loop(buffers, result);
    }
    if (result.failure.empty() && options_.loop) {
        back_to_back(buffers, result);
    }
    if (result.failure.empty() && checked) {
        // The loop had no barriers in between, so stale flags would show in this call.
        result.failure = validated_calls(buffers, 1);
    }
    allgather_.detach();
    result.calls = calls_;
    result.validated = validated_;
    result.served = fewest_counted(comm_, counter_, before);
    return result;
}

}  // namespace bench
