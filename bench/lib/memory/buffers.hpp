// SPDX-License-Identifier: BSD-3-Clause
// The send and the receive buffer of one size, and their contents.
#pragma once

#include "bench/lib/collective/collective.hpp"
#include "bench/lib/options/options.hpp"
#include "memory.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bench {

// The two allocations. Several pairs of buffers may take turns in them.
struct Allocations {
    Allocations(const Memories& memories, std::size_t send_bytes, std::size_t receive_bytes)
        : send(*memories.send, send_bytes), receive(*memories.receive, receive_bytes)
    {
    }
    Buffer send;
    Buffer receive;
};

class Buffers {
public:
    Buffers(MPI_Comm comm, const Memories& memories, std::size_t bytes, bool in_place,
            const Blocks& blocks = {});
    // Uses allocations that are large enough, from their beginnings or from a later place.
    Buffers(MPI_Comm comm, std::shared_ptr<const Allocations> allocations, std::size_t bytes,
            bool in_place, const Blocks& blocks = {}, std::size_t send_at = 0,
            std::size_t receive_at = 0);
    // So many pairs of one size, one behind the other in two allocations.
    [[nodiscard]] static std::vector<Buffers> in_turns(MPI_Comm comm, const Memories& memories,
                                                       const Options& options, std::size_t bytes);

    // Collective. The reason if a rank has too little memory; else empty.
    [[nodiscard]] std::string complete() const;

    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    void attach(Allgather& allgather) const;
    void call(Allgather& allgather) const;
    void begin(Allgather& allgather) const;

    // What an application does before and after a call: write the block of this rank, and read the
    // result. One byte of each cache line stands for it, and keeps its value. For memory that the CPU
    // reaches.
    void renew() const;
    void look_through() const;

    // Fills both buffers for a call. Each number is used once in a run.
    void prepare(std::uint64_t call_number) const;
    // Collective. Describes the first wrong byte of any rank; empty if there is none.
    [[nodiscard]] std::string check(std::uint64_t call_number) const;

private:
    [[nodiscard]] void* send() const
    {
        return in_place_ ? nullptr : allocations_->send.at(send_at_);
    }
    [[nodiscard]] void* receive() const { return allocations_->receive.at(receive_at_); }

    MPI_Comm comm_;
    int rank_;
    std::vector<int> world_rank_;  // seeds the pattern: no two ranks of the job send the same bytes
    std::size_t bytes_;            // of a shard, without holes
    Blocks blocks_;
    std::size_t extent_;  // of a shard, with holes
    bool in_place_;
    std::shared_ptr<const Allocations> allocations_;
    std::size_t send_at_, receive_at_;  // in the allocations
};

}  // namespace bench
