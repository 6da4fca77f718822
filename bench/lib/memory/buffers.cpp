// SPDX-License-Identifier: BSD-3-Clause
#include "buffers.hpp"

#include "bench/lib/program/agree.hpp"
#include "pattern.hpp"

#include <numeric>
#include <utility>

namespace bench {
namespace {

int rank_in(MPI_Comm comm)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

std::size_t ranks_of(MPI_Comm comm)
{
    int ranks = 0;
    MPI_Comm_size(comm, &ranks);
    return static_cast<std::size_t>(ranks);
}

std::vector<int> world_ranks(MPI_Comm comm)
{
    std::vector<int> ranks(ranks_of(comm));
    std::iota(ranks.begin(), ranks.end(), 0);
    std::vector<int> in_world(ranks.size());
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Comm_group(comm, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(group, static_cast<int>(ranks.size()), ranks.data(), world,
                              in_world.data());
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    return in_world;
}

std::string describe(int rank, std::uint64_t call, const Block& block, const Mismatch& wrong)
{
    return "rank " + std::to_string(rank) + ", " + std::to_string(block.bytes) +
           " bytes a rank, call " + std::to_string(call) + ": block of rank " +
           std::to_string(block.rank) + ", first wrong byte at offset " +
           std::to_string(wrong.offset) + ": expected " + std::to_string(wrong.expected) +
           ", found " + std::to_string(wrong.found);
}

}  // namespace

Buffers::Buffers(MPI_Comm comm, const Memories& memories, std::size_t bytes, bool in_place,
                 const Pieces& pieces)
    : Buffers(comm,
              std::make_shared<const Room>(memories, in_place ? 0 : pieces.extent(bytes),
                                           ranks_of(comm) * pieces.extent(bytes)),
              bytes, in_place, pieces)
{
}

Buffers::Buffers(MPI_Comm comm, std::shared_ptr<const Room> room, std::size_t bytes, bool in_place,
                 const Pieces& pieces)
    : comm_(comm), rank_(rank_in(comm)), world_rank_(world_ranks(comm)), bytes_(bytes),
      pieces_(pieces), extent_(pieces.extent(bytes)), in_place_(in_place), room_(std::move(room))
{
}

std::string Buffers::complete() const
{
    const bool both = room_->send.data() != nullptr && room_->receive.data() != nullptr;
    return agree_on_failure(comm_, both ? ""
                                        : "rank " + std::to_string(rank_) + ": no memory for " +
                                              std::to_string(world_rank_.size()) + " blocks of " +
                                              std::to_string(extent_) +
                                              " bytes; give smaller --sizes");
}

void Buffers::attach(Allgather& allgather) const
{
    allgather.attach(room_->send.data(), room_->send.bytes(), room_->receive.data(),
                     room_->receive.bytes());
}

void Buffers::call(Allgather& allgather) const
{
    allgather.call(in_place_ ? nullptr : room_->send.data(), room_->receive.data(), bytes_);
}

void Buffers::prepare(std::uint64_t call_number) const
{
    for (std::size_t source = 0; source < world_rank_.size(); ++source) {
        write_poison(room_->receive, source * extent_,
                     {world_rank_[source], call_number, extent_, pieces_});
    }
    const auto self = static_cast<std::size_t>(rank_);
    const Block own{world_rank_[self], call_number, extent_, pieces_};
    if (in_place_) {
        write_block(room_->receive, self * extent_, own);
    } else {
        write_block(room_->send, 0, own);
    }
}

std::string Buffers::check(std::uint64_t call_number) const
{
    const int self = world_rank_[static_cast<std::size_t>(rank_)];
    std::string wrong;
    for (std::size_t source = 0; source < world_rank_.size() && wrong.empty(); ++source) {
        const Block block{world_rank_[source], call_number, extent_, pieces_};
        const auto mismatch = check_block(room_->receive, source * extent_, block);
        if (mismatch) {
            wrong = describe(self, call_number, block, *mismatch);
        }
    }
    return agree_on_failure(comm_, wrong);
}

}  // namespace bench
