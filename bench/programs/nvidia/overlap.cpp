// SPDX-License-Identifier: BSD-3-Clause
#include "overlap.hpp"

#include "bench/lib/timing/statistics.hpp"
#include "bench/lib/timing/timing.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace bench {
namespace {

constexpr long usual_iterations = 20;
constexpr long warmup = 3;

double median(std::vector<double> times) { return summarize(std::move(times)).median; }

double mean(const std::vector<double>& times)
{
    return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
}

template <typename Compare>
double median_of_pairs(const std::vector<double>& with, const std::vector<double>& without,
                       Compare compare)
{
    std::vector<double> compared(with.size());
    std::transform(with.begin(), with.end(), without.begin(), compared.begin(), compare);
    return median(std::move(compared));
}

}  // namespace

OverlapBench::OverlapBench(MPI_Comm comm, const Options& options, const Memories& memories,
                           Allgather& allgather, const Counter* counter, Gemm& gemm)
    : comm_(comm), options_(options), memories_(memories), allgather_(allgather), counter_(counter),
      gemm_(gemm)
{
}

void OverlapBench::time(long gemms, const Buffers* buffers, Times& times)
{
    MPI_Barrier(comm_);
    const double start = MPI_Wtime();
    if (gemms > 0) {
        gemm_.launch(gemms);
    }
    if (buffers != nullptr) {
        buffers->begin(allgather_);
        ++calls_;
    }
    if (gemms > 0) {
        gemm_.wait();
    }
    if (buffers != nullptr) {
        allgather_.end();
    }
    times.host.push_back(MPI_Wtime() - start);
    times.device.push_back(gemms > 0 ? gemm_.device_time() : 0.0);
}

std::vector<double> OverlapBench::slowest(const std::vector<double>& times) const
{
    return slowest_times(comm_, {times.begin() + warmup, times.end()});
}

// Uses the device's clock, because the host's times include launch and wait.
long OverlapBench::choose_gemms(double allgather)
{
    constexpr long few = 4;
    Times times;
    for (long i = 0; i < warmup + few; ++i) {
        time(few, nullptr, times);
    }
    const double one = median(slowest(times.device)) / few;
    return std::max(1L, static_cast<long>(std::ceil(options_.gemm_factor * allgather / one)));
}

// Calls one behind the other, for so long that the GPU is never idle in between. A burst in which it was, on any rank,
// does not count. The ranks meet behind the launch of the GEMMs, so that no call waits for it.
double OverlapBench::under_gemms(const Buffers& buffers, const Overlap& result)
{
    constexpr long calls = 8;
    const double one = result.gemm / static_cast<double>(result.gemms);
    const double most = 2.0 * one;  // that a call waits
    const auto gemms = static_cast<long>(
        std::ceil(static_cast<double>(calls) * (most + 2.0 * result.allgather) / one));
    std::vector<double> times;
    for (long i = 0; i < warmup + result.iterations; ++i) {
        std::vector<double> burst;
        MPI_Barrier(comm_);
        gemm_.launch(1 + gemms);
        MPI_Barrier(comm_);
        for (long call = 0; call < calls; ++call) {
            const double start = MPI_Wtime();
            buffers.begin(allgather_);
            allgather_.end();
            burst.push_back(MPI_Wtime() - start);
        }
        calls_ += calls;
        int is_busy = gemm_.runs() ? 1 : 0;
        gemm_.wait();
        MPI_Allreduce(MPI_IN_PLACE, &is_busy, 1, MPI_INT, MPI_MIN, comm_);
        if (i >= warmup && is_busy != 0) {
            times.insert(times.end(), burst.begin(), burst.end());
        }
    }
    return times.empty() ? 0.0 : mean(slowest_times(comm_, times));
}

std::string OverlapBench::validated_call(const Buffers& buffers, long gemms)
{
    buffers.prepare(++call_number_);
    MPI_Barrier(comm_);
    gemm_.launch(gemms);
    buffers.begin(allgather_);
    ++calls_;
    allgather_.end();
    std::string wrong = buffers.check(call_number_);
    gemm_.wait();
    return wrong;
}

void OverlapBench::measure(const Buffers& buffers, Overlap& result)
{
    const long iterations = warmup + result.iterations;
    Times allgather;
    for (long i = 0; i < iterations; ++i) {
        time(0, &buffers, allgather);
    }
    result.allgather = median(slowest(allgather.host));
    result.gemms = choose_gemms(result.allgather);
    result.failure = validated_call(buffers, result.gemms);
    if (!result.failure.empty()) {
        return;
    }
    Times alone;
    Times both;
    for (long i = 0; i < iterations; ++i) {
        time(result.gemms, nullptr, alone);
        time(result.gemms, &buffers, both);
    }
    const std::vector<double> gemm = slowest(alone.host);
    const std::vector<double> whole = slowest(both.host);
    result.gemm = median(gemm);
    result.both = median(whole);
    result.added = median_of_pairs(whole, gemm, std::minus<>());
    result.slowdown =
        median_of_pairs(slowest(both.device), slowest(alone.device), std::divides<>()) - 1.0;
    result.busy = under_gemms(buffers, result);
    result.failure = validated_call(buffers, result.gemms);
}

Overlap OverlapBench::measure(std::size_t bytes)
{
    Overlap result;
    result.bytes = bytes;
    result.iterations = options_.iterations > 0 ? options_.iterations : usual_iterations;
    const Buffers buffers(comm_, memories_, bytes, options_.in_place);
    result.failure = buffers.complete();
    result.usable = result.failure.empty();
    if (!result.usable) {
        return result;
    }
    buffers.attach(allgather_);
    calls_ = 0;
    const auto before = read(counter_);
    measure(buffers, result);
    result.calls = calls_;
    result.served = fewest_counted(comm_, counter_, before);
    allgather_.detach();
    return result;
}

}  // namespace bench
