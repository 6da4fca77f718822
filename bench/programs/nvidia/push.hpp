// SPDX-License-Identifier: BSD-3-Clause
// Maps a buffer in the next rank's GPU and copies into that buffer.
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
    // Every function is collective, constructor and destructor too. failure() is the same on all
    // ranks.
    Push(MPI_Comm comm, std::size_t bytes);
    Push(const Push&) = delete;
    Push& operator=(const Push&) = delete;
    ~Push();

    [[nodiscard]] const std::string& failure() const { return failure_; }

    // Seconds of each copy, one copy behind the other. All ranks copy at once.
    [[nodiscard]] std::vector<double> time(long copies);
    // Makes one copy and describes the first wrong byte; empty if there is none.
    [[nodiscard]] std::string check();

private:
    void map_next();
    void start_copy();

    MPI_Comm comm_;
    int rank_ = 0;
    int ranks_ = 0;
    CudaMemory memory_;
    Buffer source_;
    Buffer target_;  // the previous rank copies into it
    void* next_ = nullptr;
    CudaStream stream_;
    std::string failure_;
};

}  // namespace bench
