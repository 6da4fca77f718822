// SPDX-License-Identifier: BSD-3-Clause
// The collectives that hier does not serve: each in its blocking, nonblocking and persistent form,
// all of one set of arguments.
#pragma once

#include "test/mpi/lib/gpu_memory.hpp"

#include <functional>
#include <random>
#include <string>
#include <vector>

namespace hier_test {

// The arguments of one call. A rank's buffers begin some bytes before their elements.
struct Call {
    MPI_Comm comm = MPI_COMM_WORLD;
    int size = 0, rank = 0, root = 0;
    int count = 0;  // elements of a block
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Aint extent = 0;
    std::vector<int> counts, displacements;  // of each rank's block, in elements
    std::vector<int> matrix;                 // counts of what each rank sends to each one
    std::vector<int> bytes, other_bytes;     // displacements for alltoallw
    std::vector<int> of_row, of_column, row_at, column_at;
    std::vector<MPI_Datatype> types;
    bool in_place = false;
    // For the neighbourhood calls. Each rank has one neighbour to send to, and one to receive from.
    int neighbor_at = 1;
    MPI_Aint neighbor_bytes = 0;

    bool is_root() const { return rank == root; }
    int own_count() const { return counts[static_cast<std::size_t>(rank)]; }
};

// Equal on all ranks, but for `rank`. No block has fewer elements than `least`.
Call draw_call(std::mt19937& random, MPI_Comm comm, MPI_Datatype type, int least);
// The same in place, where ranks send as many elements to each other as they receive from them.
Call in_place_of(Call call);
// Bytes that are enough for the elements of every collective.
std::size_t room(const Call& call);

// Which ranks have a buffer that means something.
enum class Uses { none, root, all };

struct Collective {
    using Run = std::function<int(const Call&, void* send, void* receive, MPI_Request*)>;
    const char* name;  // of the blocking form
    bool can_be_in_place;
    bool is_reduction;
    bool is_neighborhood;
    bool has_all_manners;  // false: hier serves the other forms than the blocking one
    Uses send, receive;
    Run blocking, nonblocking;
    Run persistent;  // empty: this MPI has none
    const char *nonblocking_name, *persistent_name;
};

const std::vector<Collective>& collectives();

}  // namespace hier_test
