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

constexpr std::size_t line = 64;

std::string describe(int rank, std::uint64_t call, const Shard& shard, const Mismatch& wrong)
{
    return "rank " + std::to_string(rank) + ", " + std::to_string(shard.bytes) +
           " bytes a rank, call " + std::to_string(call) + ": data of rank " +
           std::to_string(shard.rank) + ", first wrong byte at offset " +
           std::to_string(wrong.offset) + ": expected " + std::to_string(wrong.expected) +
           ", found " + std::to_string(wrong.found);
}

}  // namespace

Buffers::Buffers(MPI_Comm comm, const Memories& memories, std::size_t bytes, bool in_place,
                 const Blocks& blocks)
    : Buffers(comm,
              std::make_shared<const Allocations>(memories, in_place ? 0 : blocks.extent(bytes),
                                                  ranks_of(comm) * blocks.extent(bytes)),
              bytes, in_place, blocks)
{
}

Buffers::Buffers(MPI_Comm comm, std::shared_ptr<const Allocations> allocations, std::size_t bytes,
                 bool in_place, const Blocks& blocks, std::size_t send_at, std::size_t receive_at)
    : comm_(comm), rank_(rank_in(comm)), world_rank_(world_ranks(comm)), bytes_(bytes),
      blocks_(blocks), extent_(blocks.extent(bytes)), in_place_(in_place),
      allocations_(std::move(allocations)), send_at_(send_at), receive_at_(receive_at)
{
}

std::vector<Buffers> Buffers::in_turns(MPI_Comm comm, const Memories& memories,
                                       const Options& options, std::size_t bytes)
{
    constexpr std::size_t unit = 256;  // where allocations of GPUs begin, too
    const auto count = static_cast<std::size_t>(options.buffers);
    const std::size_t extent = options.blocks.extent(bytes), shards = ranks_of(comm);
    const auto pitch = [&](std::size_t length) {
        return count == 1 ? length : (length + unit - 1) / unit * unit;
    };
    const std::size_t of_send = options.in_place ? 0 : pitch(extent);
    const std::size_t of_receive = pitch(shards * extent);
    const auto allocations =
        std::make_shared<const Allocations>(memories, count * of_send, count * of_receive);
    std::vector<Buffers> all;
    for (std::size_t i = 0; i < count; ++i) {
        all.emplace_back(comm, allocations, bytes, options.in_place, options.blocks, i * of_send,
                         i * of_receive);
    }
    return all;
}

std::string Buffers::complete() const
{
    const bool both =
        allocations_->send.data() != nullptr && allocations_->receive.data() != nullptr;
    return agree_on_failure(comm_, both ? ""
                                        : "rank " + std::to_string(rank_) + ": no memory for " +
                                              std::to_string(extent_) + " bytes of each of " +
                                              std::to_string(world_rank_.size()) +
                                              " ranks; give smaller --sizes");
}

void Buffers::attach(Allgather& allgather) const
{
    allgather.attach(allocations_->send.data(), allocations_->send.bytes(),
                     allocations_->receive.data(), allocations_->receive.bytes());
}

void Buffers::call(Allgather& allgather) const { allgather.call(send(), receive(), bytes_); }

void Buffers::begin(Allgather& allgather) const { allgather.begin(send(), receive(), bytes_); }

void Buffers::renew() const
{
    const auto self = static_cast<std::size_t>(rank_);
    auto* const block = static_cast<volatile unsigned char*>(
        in_place_ ? allocations_->receive.at(receive_at_ + self * extent_) : send());
    for (std::size_t i = 0; i < extent_; i += line) {
        block[i] = block[i];
    }
}

void Buffers::look_through() const
{
    const auto* const result = static_cast<const volatile unsigned char*>(receive());
    for (std::size_t i = 0; i < world_rank_.size() * extent_; i += line) {
        (void)result[i];
    }
}

void Buffers::prepare(std::uint64_t call_number) const
{
    for (std::size_t source = 0; source < world_rank_.size(); ++source) {
        write_poison(allocations_->receive, receive_at_ + source * extent_,
                     {world_rank_[source], call_number, extent_, blocks_});
    }
    const auto self = static_cast<std::size_t>(rank_);
    const Shard own{world_rank_[self], call_number, extent_, blocks_};
    if (in_place_) {
        write_shard(allocations_->receive, receive_at_ + self * extent_, own);
    } else {
        write_shard(allocations_->send, send_at_, own);
    }
}

std::string Buffers::check(std::uint64_t call_number) const
{
    const int self = world_rank_[static_cast<std::size_t>(rank_)];
    std::string wrong;
    for (std::size_t source = 0; source < world_rank_.size() && wrong.empty(); ++source) {
        const Shard shard{world_rank_[source], call_number, extent_, blocks_};
        const auto mismatch =
            check_shard(allocations_->receive, receive_at_ + source * extent_, shard);
        if (mismatch) {
            wrong = describe(self, call_number, shard, *mismatch);
        }
    }
    return agree_on_failure(comm_, wrong);
}

}  // namespace bench
