#include "buffers.hpp"

#include "agree.hpp"
#include "pattern.hpp"

namespace bench {
namespace {

int rank_in(MPI_Comm comm)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

int ranks_of(MPI_Comm comm)
{
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    return ranks;
}

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

Buffers::Buffers(MPI_Comm comm, const Memories& memories, std::size_t bytes, bool in_place)
    : comm_(comm), rank_(rank_in(comm)), ranks_(ranks_of(comm)), bytes_(bytes), in_place_(in_place),
      send_(*memories.send, in_place ? 0 : bytes),
      receive_(*memories.receive, static_cast<std::size_t>(ranks_) * bytes)
{
}

std::string Buffers::complete() const
{
    const bool both = send_.data() != nullptr && receive_.data() != nullptr;
    return agree_on_failure(comm_, both ? ""
                                        : "rank " + std::to_string(rank_) + ": no memory for " +
                                              std::to_string(ranks_) + " blocks of " +
                                              std::to_string(bytes_) +
                                              " bytes; give smaller --sizes");
}

void Buffers::attach(Allgather& allgather) const
{
    allgather.attach(send_.data(), send_.bytes(), receive_.data(), receive_.bytes());
}

void Buffers::call(Allgather& allgather) const
{
    allgather.call(in_place_ ? nullptr : send_.data(), receive_.data(), bytes_);
}

void Buffers::prepare(std::uint64_t call_number) const
{
    for (int source = 0; source < ranks_; ++source) {
        write_poison(receive_, static_cast<std::size_t>(source) * bytes_,
                     {source, call_number, bytes_});
    }
    const Block own{rank_, call_number, bytes_};
    if (in_place_) {
        write_block(receive_, static_cast<std::size_t>(rank_) * bytes_, own);
    } else {
        write_block(send_, 0, own);
    }
}

std::string Buffers::check(std::uint64_t call_number) const
{
    std::string wrong;
    for (int source = 0; source < ranks_ && wrong.empty(); ++source) {
        const Block block{source, call_number, bytes_};
        const auto mismatch =
            check_block(receive_, static_cast<std::size_t>(source) * bytes_, block);
        if (mismatch) {
            wrong = describe(rank_, call_number, source, block, *mismatch);
        }
    }
    return agree_on_failure(comm_, wrong);
}

}  // namespace bench
