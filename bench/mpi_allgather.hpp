// MPI_Allgather on a communicator.
#pragma once

#include "collective.hpp"

#include <mpi.h>

namespace bench {

class MpiAllgather final : public Allgather {
public:
    explicit MpiAllgather(MPI_Comm comm) : comm_(comm) {}

    void attach(void*, std::size_t, void*, std::size_t) override {}
    void detach() override {}
    // An error ends the program by itself: nobody changes MPI_ERRORS_ARE_FATAL.
    void call(const void* send, void* receive, std::size_t bytes) override
    {
        const int count = static_cast<int>(bytes);
        MPI_Allgather(send != nullptr ? send : MPI_IN_PLACE, count, MPI_BYTE, receive, count,
                      MPI_BYTE, comm_);
    }

private:
    MPI_Comm comm_;
};

}  // namespace bench
