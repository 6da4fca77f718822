// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>

namespace bench {

int complain(int rank, Program program, int status, const std::string& message)
{
    if (rank == 0) {
        std::fprintf(stderr, "%s: %s\n", name_of(program), message.c_str());
    }
    return status;
}

int run_program(int argc, char** argv, Program program, int (*run)(int rank, Options& options))
{
    int rank = 0, level = 0;
    MPI_Init_thread(&argc, &argv,
                    program == Program::threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    ParsedOptions parsed = parse_options(program, argc, argv);
    int status = 0;
    if (!parsed.error.empty()) {
        status = complain(rank, program, exit_usage, parsed.error);
    } else if (parsed.options.help) {
        if (rank == 0) {
            std::fputs(usage(program), stdout);
        }
    } else {
        status = run(rank, parsed.options);
    }
    MPI_Finalize();
    return status;
}

void give_up(const std::string& what)
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::fprintf(stderr, "bench: rank %d: %s\n", rank, what.c_str());
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, exit_wrong);
    std::abort();
}

}  // namespace bench
