// SPDX-License-Identifier: BSD-3-Clause
#include "push.hpp"

#include "bench/lib/memory/pattern.hpp"
#include "bench/lib/program/agree.hpp"

namespace bench {
namespace {

// An event between two copies, so that the time of each copy is a sample.
class Event {
public:
    Event() { require(cudaEventCreate(&event_), "cudaEventCreate"); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    ~Event() { require(cudaEventDestroy(event_), "cudaEventDestroy"); }

    void record(const CudaStream& stream)
    {
        require(cudaEventRecord(event_, stream.get()), "cudaEventRecord");
    }
    [[nodiscard]] double since(const Event& earlier) const
    {
        float milliseconds = 0.0F;
        require(cudaEventElapsedTime(&milliseconds, earlier.event_, event_),
                "cudaEventElapsedTime");
        return static_cast<double>(milliseconds) * 1e-3;
    }

private:
    cudaEvent_t event_ = nullptr;
};

}  // namespace

Push::Push(MPI_Comm comm, std::size_t bytes)
    : comm_(comm), source_(memory_, bytes), target_(memory_, bytes)
{
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks_);
    const bool both = source_.data() != nullptr && target_.data() != nullptr;
    failure_ = agree_on_failure(comm, both ? ""
                                           : "rank " + std::to_string(rank_) +
                                                 ": no GPU memory; give smaller --bytes");
    if (failure_.empty()) {
        map_next();
    }
}

void Push::map_next()
{
    cudaIpcMemHandle_t own{};
    cudaIpcMemHandle_t next{};
    require(cudaIpcGetMemHandle(&own, target_.data()), "cudaIpcGetMemHandle");
    const int bytes = static_cast<int>(sizeof own);
    MPI_Sendrecv(&own, bytes, MPI_BYTE, (rank_ + ranks_ - 1) % ranks_, 0, &next, bytes, MPI_BYTE,
                 (rank_ + 1) % ranks_, 0, comm_, MPI_STATUS_IGNORE);
    const cudaError_t result = cudaIpcOpenMemHandle(&next_, next, cudaIpcMemLazyEnablePeerAccess);
    failure_ = agree_on_failure(
        comm_, result == cudaSuccess ? ""
                                     : "rank " + std::to_string(rank_) + " cannot map GPU memory " +
                                           "of rank " + std::to_string((rank_ + 1) % ranks_) +
                                           ": cudaIpcOpenMemHandle: " + cudaGetErrorString(result));
}

Push::~Push()
{
    if (next_ != nullptr) {
        require(cudaIpcCloseMemHandle(next_), "cudaIpcCloseMemHandle");
    }
    // A rank frees its buffer only when no other rank maps it any more.
    MPI_Barrier(comm_);
}

void Push::start_copy()
{
    require(cudaMemcpyAsync(next_, source_.data(), source_.bytes(), cudaMemcpyDeviceToDevice,
                            stream_.get()),
            "cudaMemcpyAsync to another GPU");
}

std::vector<double> Push::time(long copies)
{
    std::vector<Event> events(static_cast<std::size_t>(copies) + 1);
    start_copy();
    stream_.wait();
    MPI_Barrier(comm_);
    events.front().record(stream_);
    for (std::size_t i = 1; i < events.size(); ++i) {
        start_copy();
        events[i].record(stream_);
    }
    stream_.wait();
    std::vector<double> times;
    for (std::size_t i = 1; i < events.size(); ++i) {
        times.push_back(events[i].since(events[i - 1]));
    }
    return times;
}

std::string Push::check()
{
    const int previous = (rank_ + ranks_ - 1) % ranks_;
    const Shard sent{rank_, 1, source_.bytes()};
    const Shard expected{previous, 1, target_.bytes()};
    write_shard(source_, 0, sent);
    write_poison(target_, 0, expected);
    MPI_Barrier(comm_);
    start_copy();
    stream_.wait();
    MPI_Barrier(comm_);
    const auto wrong = check_shard(target_, 0, expected);
    return agree_on_failure(
        comm_, wrong ? "rank " + std::to_string(rank_) + ": first wrong byte of rank " +
                           std::to_string(previous) + " at offset " + std::to_string(wrong->offset)
                     : "");
}

}  // namespace bench
