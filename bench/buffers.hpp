// The two buffers of one size, and what is in them.
#pragma once

#include "collective.hpp"
#include "memory.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

class Buffers {
public:
    Buffers(MPI_Comm comm, const Memories& memories, std::size_t bytes, bool in_place);

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
    int ranks_;
    std::size_t bytes_;  // a rank
    bool in_place_;
    Buffer send_;
    Buffer receive_;
};

}  // namespace bench
