// SPDX-License-Identifier: BSD-3-Clause
// The two buffers of one size, and what is in them.
#pragma once

#include "bench/lib/collective/collective.hpp"
#include "memory.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bench {

// The two allocations, of one pair of buffers or of several that take turns.
struct Room {
    Room(const Memories& memories, std::size_t send_bytes, std::size_t receive_bytes)
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
    // The fronts of allocations that are large enough.
    Buffers(MPI_Comm comm, std::shared_ptr<const Room> room, std::size_t bytes, bool in_place,
            const Blocks& blocks = {});

    // Collective. The reason when a rank had too little memory.
    [[nodiscard]] std::string complete() const;

    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    void attach(Allgather& allgather) const;
    void call(Allgather& allgather) const;

    // Fills both for a call of this number, which is never used twice in a run.
    void prepare(std::uint64_t call_number) const;
    // Collective: the first wrong byte of any rank in words, if there is one.
    [[nodiscard]] std::string check(std::uint64_t call_number) const;

private:
    MPI_Comm comm_;
    int rank_;
    std::vector<int> world_rank_;  // seeds the pattern: no two ranks of the job send the same bytes
    std::size_t bytes_;            // of a shard, without holes
    Blocks blocks_;
    std::size_t extent_;  // of a shard, with holes
    bool in_place_;
    std::shared_ptr<const Room> room_;
};

}  // namespace bench
