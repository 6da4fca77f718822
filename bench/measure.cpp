#include "measure.hpp"

#include "agree.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace bench {
namespace {

constexpr long validated_before = 2;
constexpr long fewest_iterations = 10;

// As many calls as a stable median takes; a small size is cheap and jitters more.
long usual_iterations(std::size_t bytes)
{
    return bytes <= 8 * 1024 ? 1000 : bytes <= 512 * 1024 ? 200 : 100;
}

long usual_warmup(std::size_t bytes) { return bytes <= 8 * 1024 ? 20 : 5; }

std::string describe(int rank, std::uint64_t call, int source, const Block& block,
                     const Mismatch& wrong)
{
    return "rank " + std::to_string(rank) + ", " + std::to_string(block.bytes) +
           " bytes a rank, call " + std::to_string(call) + ": block of rank " +
           std::to_string(source) + ", first wrong byte at offset " + std::to_string(wrong.offset) +
           ": expected " + std::to_string(wrong.expected) + ", found " +
           std::to_string(wrong.found);
}

}  // namespace

struct Bench::Buffers {
    Buffers(Memory& memory, int rank, int ranks, std::size_t bytes_a_rank, bool place)
        : bytes(bytes_a_rank), in_place(place),
          own_offset(static_cast<std::size_t>(rank) * bytes_a_rank),
          send(memory, place ? 0 : bytes_a_rank),
          receive(memory, static_cast<std::size_t>(ranks) * bytes_a_rank)
    {
    }

    [[nodiscard]] bool complete() const
    {
        return send.data() != nullptr && receive.data() != nullptr;
    }

    std::size_t bytes;
    bool in_place;
    std::size_t own_offset;  // of this rank's block in the receive buffer
    Buffer send;
    Buffer receive;
};

Bench::Bench(MPI_Comm comm, const Options& options, Memory& memory, const Counter& counter)
    : comm_(comm), options_(options), memory_(memory), counter_(counter)
{
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &ranks_);
}

void Bench::call(const Buffers& buffers)
{
    const int count = static_cast<int>(buffers.bytes);
    if (buffers.in_place) {
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffers.receive.data(), count, MPI_BYTE,
                      comm_);
    } else {
        MPI_Allgather(buffers.send.data(), count, MPI_BYTE, buffers.receive.data(), count, MPI_BYTE,
                      comm_);
    }
    ++calls_;
}

void Bench::prepare(const Buffers& buffers)
{
    ++call_number_;
    for (int source = 0; source < ranks_; ++source) {
        write_poison(buffers.receive, static_cast<std::size_t>(source) * buffers.bytes,
                     {source, call_number_, buffers.bytes});
    }
    const Block own{rank_, call_number_, buffers.bytes};
    if (buffers.in_place) {
        write_block(buffers.receive, buffers.own_offset, own);
    } else {
        write_block(buffers.send, 0, own);
    }
}

std::string Bench::check(const Buffers& buffers)
{
    std::string wrong;
    for (int source = 0; source < ranks_ && wrong.empty(); ++source) {
        const Block block{source, call_number_, buffers.bytes};
        const auto mismatch =
            check_block(buffers.receive, static_cast<std::size_t>(source) * buffers.bytes, block);
        if (mismatch) {
            wrong = describe(rank_, call_number_, source, block, *mismatch);
        }
    }
    ++validated_;
    return agree_on_failure(comm_, wrong);
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
    const long warmup = options_.warmup >= 0 ? options_.warmup : usual_warmup(buffers.bytes);
    for (long i = 0; i < warmup; ++i) {
        call(buffers);
    }
    if (options_.iterations > 0) {
        return options_.iterations;
    }
    MPI_Barrier(comm_);
    const double start = MPI_Wtime();
    call(buffers);
    call(buffers);
    double elapsed = (MPI_Wtime() - start) / 2.0;
    MPI_Allreduce(MPI_IN_PLACE, &elapsed, 1, MPI_DOUBLE, MPI_MAX, comm_);
    const double affordable = options_.seconds / std::max(elapsed, 1e-9);
    const long usual = usual_iterations(buffers.bytes);
    return affordable >= static_cast<double>(usual)
               ? usual
               : std::max(fewest_iterations, static_cast<long>(affordable));
}

void Bench::timed_loop(const Buffers& buffers, Measurement& result)
{
    const bool check_each = options_.validate == Validate::all;
    std::vector<double> times(static_cast<std::size_t>(result.iterations));
    for (double& time : times) {
        if (check_each) {
            prepare(buffers);
        }
        MPI_Barrier(comm_);
        const double start = MPI_Wtime();
        call(buffers);
        time = MPI_Wtime() - start;
        if (check_each && !(result.failure = check(buffers)).empty()) {
            return;
        }
    }
    // Only now do the ranks compare their clocks' differences: a message inside the loop would
    // disturb the next call.
    std::vector<double> slowest(times.size());
    std::vector<double> sum(times.size());
    const int count = static_cast<int>(times.size());
    MPI_Reduce(times.data(), slowest.data(), count, MPI_DOUBLE, MPI_MAX, 0, comm_);
    MPI_Reduce(times.data(), sum.data(), count, MPI_DOUBLE, MPI_SUM, 0, comm_);
    result.slowest_rank = summarize(slowest);
    result.mean_of_ranks = summarize(sum).mean / ranks_;
}

std::optional<std::uint64_t> Bench::fewest_served(std::optional<std::uint64_t> before)
{
    const auto now = counter_.read();
    const bool known = before && now;
    constexpr auto unknown = std::numeric_limits<std::uint64_t>::max();
    // Two values in one reduction: a rank without the counter makes the answer "not known".
    std::uint64_t fewest[2] = {known ? 1U : 0U, known ? *now - *before : unknown};
    MPI_Allreduce(MPI_IN_PLACE, fewest, 2, MPI_UINT64_T, MPI_MIN, comm_);
    return fewest[0] != 0 ? std::optional(fewest[1]) : std::nullopt;
}

Measurement Bench::measure(std::size_t bytes)
{
    Measurement result;
    result.bytes = bytes;
    const Buffers buffers(memory_, rank_, ranks_, bytes, options_.in_place);
    result.failure = agree_on_failure(
        comm_, buffers.complete()
                   ? ""
                   : "rank " + std::to_string(rank_) + ": no memory for " + std::to_string(ranks_) +
                         " blocks of " + std::to_string(bytes) + " bytes; give smaller --sizes");
    if (!result.failure.empty()) {
        result.usable = false;
        return result;
    }
    calls_ = validated_ = 0;
    const auto before = counter_.read();
    const bool checked = options_.validate != Validate::none;
    result.failure = validated_calls(buffers, checked ? validated_before : 0);
    if (result.failure.empty()) {
        result.iterations = choose_iterations(buffers);
        timed_loop(buffers, result);
    }
    if (result.failure.empty() && checked) {
        // A call right after the unsynchronised rush of the loop: stale flags show here.
        result.failure = validated_calls(buffers, 1);
    }
    result.calls = calls_;
    result.validated = validated_;
    result.served = fewest_served(before);
    return result;
}

}  // namespace bench
