#include "overlap.hpp"

#include "timing.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace bench {
namespace {

constexpr long usual_iterations = 20;
constexpr long warmup = 3;

}  // namespace

OverlapBench::OverlapBench(MPI_Comm comm, const Options& options, const Memories& memories,
                           Allgather& allgather, const Counter* counter, Gemm& gemm)
    : comm_(comm), options_(options), memories_(memories), allgather_(allgather), counter_(counter),
      gemm_(gemm)
{
}

OverlapBench::Times OverlapBench::time(long gemms, const Buffers* buffers, long iterations)
{
    std::vector<double> host;
    std::vector<double> device;
    for (long i = -warmup; i < iterations; ++i) {
        MPI_Barrier(comm_);
        const double start = MPI_Wtime();
        if (gemms > 0) {
            gemm_.launch(gemms);
        }
        if (buffers != nullptr) {
            buffers->call(allgather_);
            ++calls_;
        }
        if (gemms > 0) {
            gemm_.wait();
        }
        const double elapsed = MPI_Wtime() - start;
        if (i >= 0) {
            host.push_back(elapsed);
            device.push_back(gemms > 0 ? gemm_.device_time() : 0.0);
        }
    }
    return {find_slowest(comm_, host).statistics.median,
            find_slowest(comm_, device).statistics.median};
}

// By the device's clock, so that launch and wait are not multiplied.
long OverlapBench::choose_gemms(double allgather)
{
    constexpr long few = 4;
    const double one = time(few, nullptr, few).device / few;
    return std::max(1L, static_cast<long>(std::ceil(options_.gemm_factor * allgather / one)));
}

std::string OverlapBench::validated_call(const Buffers& buffers, long gemms)
{
    buffers.prepare(++call_number_);
    MPI_Barrier(comm_);
    gemm_.launch(gemms);
    buffers.call(allgather_);
    ++calls_;
    std::string wrong = buffers.check(call_number_);
    gemm_.wait();
    return wrong;
}

void OverlapBench::measure(const Buffers& buffers, Overlap& result)
{
    result.allgather = time(0, &buffers, result.iterations).host;
    result.gemms = choose_gemms(result.allgather);
    result.failure = validated_call(buffers, result.gemms);
    if (!result.failure.empty()) {
        return;
    }
    const Times alone = time(result.gemms, nullptr, result.iterations);
    const Times both = time(result.gemms, &buffers, result.iterations);
    result.gemm = alone.host;
    result.both = both.host;
    result.device_alone = alone.device;
    result.device_both = both.device;
    result.failure = validated_call(buffers, result.gemms);
}

Overlap OverlapBench::measure(std::size_t bytes)
{
    Overlap result;
    result.bytes = bytes;
    result.iterations = options_.iterations > 0 ? options_.iterations : usual_iterations;
    const Buffers buffers(comm_, memories_, bytes, false);
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
