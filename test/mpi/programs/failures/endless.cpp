// SPDX-License-Identifier: BSD-3-Clause
// Allgathers of mixed sizes, one after the other, until somebody ends the program or a call fails. Every byte is checked.
// test/faults/kills kills a rank of it.
//
//   --ready FILE   rank 0 makes this file when every size has been gathered once
//   --seed N       of the order of sizes [1]
#include "test/mpi/lib/support.hpp"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

using namespace hier_test;

namespace {

// Messages with their data in them, published blocks, cells, and chunks of each level.
constexpr std::size_t sizes[] = {8, 1000, 20000, 300007, 3 << 20};

// A process that ends without MPI_Finalize takes nobody with it if the launcher lets the others live.
[[noreturn]] void survive(const Session& session, int status)
{
    int error_class = MPI_SUCCESS;
    MPI_Error_class(status, &error_class);
    std::fprintf(stderr, "endless: rank %d: survivor: error class %d\n", session.rank(),
                 error_class);
    std::_Exit(9);
}

}  // namespace

int main(int argc, char** argv)
{
    Session session(argc, argv, "endless", {"ready", "seed"});
    const std::string ready = session.text("ready", "");
    std::mt19937 random(static_cast<unsigned>(session.number("seed", 1)));
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    std::vector<unsigned char> receive(*std::max_element(std::begin(sizes), std::end(sizes)) *
                                       static_cast<std::size_t>(session.size()));
    for (unsigned call = 0;; ++call) {
        const std::size_t place = call < std::size(sizes) ? call : random() % std::size(sizes);
        const std::size_t bytes = sizes[place];
        session.phase("call %u, %zu bytes a rank", call, bytes);
        const auto send = Pattern(session.rank(), static_cast<int>(call)).bytes(bytes);
        const int count = static_cast<int>(bytes);
        const int status =
            MPI_Allgather(send.data(), count, MPI_BYTE, receive.data(), count, MPI_BYTE, comm);
        if (status != MPI_SUCCESS) {
            survive(session, status);
        }
        if (!check_blocks(session, receive.data(), bytes, session.size(), static_cast<int>(call),
                          "endless")) {
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        if (call + 1 == std::size(sizes) && session.rank() == 0 && !ready.empty()) {
            std::FILE* const file = std::fopen(ready.c_str(), "w");
            if (file != nullptr) {
                std::fclose(file);
            }
        }
    }
}
