// SPDX-License-Identifier: BSD-3-Clause
// MPI_Allgather on a communicator.
#pragma once

#include "bench/lib/options/options.hpp"
#include "collective.hpp"

#include <mpi.h>

namespace bench {

class MpiAllgather final : public Allgather {
public:
    explicit MpiAllgather(MPI_Comm comm, const Blocks& blocks = {}) : comm_(comm)
    {
        if (blocks.is_whole()) {
            return;
        }
        element_bytes_ = blocks.bytes;
        MPI_Datatype block = MPI_DATATYPE_NULL;
        MPI_Type_contiguous(static_cast<int>(blocks.bytes), MPI_BYTE, &block);
        MPI_Type_create_resized(block, 0, static_cast<MPI_Aint>(blocks.stride), &type_);
        MPI_Type_commit(&type_);
        MPI_Type_free(&block);
    }
    ~MpiAllgather() override
    {
        if (type_ != MPI_BYTE) {
            MPI_Type_free(&type_);
        }
    }

    void attach(void*, std::size_t, void*, std::size_t) override {}
    void detach() override {}
    // MPI_ERRORS_ARE_FATAL is the handler, so an error ends the program.
    void call(const void* send, void* receive, std::size_t bytes) override
    {
        const int count = static_cast<int>(bytes / element_bytes_);
        MPI_Allgather(send != nullptr ? send : MPI_IN_PLACE, count, type_, receive, count, type_,
                      comm_);
    }

private:
    MPI_Comm comm_;
    std::size_t element_bytes_ = 1;
    MPI_Datatype type_ = MPI_BYTE;
};

}  // namespace bench
