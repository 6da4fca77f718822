// SPDX-License-Identifier: BSD-3-Clause
// A buffer in the next rank's GPU, mapped here, and copies into it.
#pragma once

#include "bench/lib/memory/memory.hpp"
#include "cuda.hpp"

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

class Push {
public:
    // Collective from its making to its end; failure() is then the same on all ranks.
    Push(MPI_Comm comm, std::size_t bytes);
    Push(const Push&) = delete;
    Push& operator=(const Push&) = delete;
    ~Push();

    [[nodiscard]] const std::string& failure() const { return failure_; }

    // Collective: seconds of each of so many copies, one behind the other, of all ranks at once.
    [[nodiscard]] std::vector<double> time(long copies);
    // Collective: one copy, and the first wrong byte in words, if there is one.
    [[nodiscard]] std::string check();

private:
    void map_next();
    void start_copy();

    MPI_Comm comm_;
    int rank_ = 0;
    int ranks_ = 0;
    CudaMemory memory_;
    Buffer source_;
    Buffer target_;  // of the previous rank's copies
    void* next_ = nullptr;
    CudaStream stream_;
    std::string failure_;
};

}  // namespace bench
