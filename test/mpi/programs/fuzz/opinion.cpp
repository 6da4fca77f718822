// SPDX-License-Identifier: BSD-3-Clause
#include "opinion.hpp"

namespace hier_test::fuzz {

Content second_opinion(MPI_Comm comm, const TypedBuffer& buffer, int block, std::size_t bytes,
                       int root)
{
    const auto room = static_cast<int>(bytes);
    Content mine(bytes);
    Content all(bytes * static_cast<std::size_t>(size_of(comm)));
    int position = 0;
    MPI_Pack(buffer.image(block), buffer.count(), buffer.form().layout.type, mine.data(), room,
             &position, comm);
    MPI_Gather(mine.data(), room, MPI_BYTE, all.data(), room, MPI_BYTE, root, comm);
    MPI_Bcast(all.data(), static_cast<int>(all.size()), MPI_BYTE, root, comm);
    return all;
}

}  // namespace hier_test::fuzz
