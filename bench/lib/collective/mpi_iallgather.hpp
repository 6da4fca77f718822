// SPDX-License-Identifier: BSD-3-Clause
// MPI_Iallgather on a communicator.
#pragma once

#include "collective.hpp"

#include <mpi.h>

namespace bench {

class MpiIallgather final : public Allgather {
public:
    explicit MpiIallgather(MPI_Comm comm) : comm_(comm) {}

    void attach(void*, std::size_t, void*, std::size_t) override {}
    void detach() override {}
    void call(const void* send, void* receive, std::size_t bytes) override
    {
        begin(send, receive, bytes);
        end();
    }
    void begin(const void* send, void* receive, std::size_t bytes) override
    {
        const int count = static_cast<int>(bytes);
        MPI_Iallgather(send != nullptr ? send : MPI_IN_PLACE, count, MPI_BYTE, receive, count,
                       MPI_BYTE, comm_, &request_);
    }
    void end() override { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

private:
    MPI_Comm comm_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace bench
