// SPDX-License-Identifier: BSD-3-Clause
// MPI_Allgather on a communicator.
#pragma once

#include "bench/lib/options/options.hpp"
#include "collective.hpp"

#include <mpi.h>

namespace bench {

class MpiAllgather final : public Allgather {
public:
    explicit MpiAllgather(MPI_Comm comm, const Pieces& pieces = {}) : comm_(comm)
    {
        if (pieces.is_whole()) {
            return;
        }
        piece_ = pieces.bytes;
        MPI_Datatype piece = MPI_DATATYPE_NULL;
        MPI_Type_contiguous(static_cast<int>(pieces.bytes), MPI_BYTE, &piece);
        MPI_Type_create_resized(piece, 0, static_cast<MPI_Aint>(pieces.stride), &type_);
        MPI_Type_commit(&type_);
        MPI_Type_free(&piece);
    }
    ~MpiAllgather() override
    {
        if (type_ != MPI_BYTE) {
            MPI_Type_free(&type_);
        }
    }

    void attach(void*, std::size_t, void*, std::size_t) override {}
    void detach() override {}
    // An error ends the program by itself: nobody changes MPI_ERRORS_ARE_FATAL.
    void call(const void* send, void* receive, std::size_t bytes) override
    {
        const int count = static_cast<int>(bytes / piece_);
        MPI_Allgather(send != nullptr ? send : MPI_IN_PLACE, count, type_, receive, count, type_,
                      comm_);
    }

private:
    MPI_Comm comm_;
    std::size_t piece_ = 1;  // bytes of an element
    MPI_Datatype type_ = MPI_BYTE;
};

}  // namespace bench
