// SPDX-License-Identifier: BSD-3-Clause
// What every program of the bench does around its work.
#pragma once

#include "bench/lib/options/options.hpp"

#include <string>

namespace bench {

inline constexpr int exit_wrong = 1;
inline constexpr int exit_usage = 2;

// Rank 0 prints the message; gives `status` back.
int complain(int rank, Program program, int status, const std::string& message);

// main(): MPI, the command line, then `run` on every rank; its result is the exit status.
int run_program(int argc, char** argv, Program program, int (*run)(int rank, Options& options));

// Ends all ranks: for failures of one rank that leave the others in a call that never returns.
[[noreturn]] void give_up(const std::string& what);

}  // namespace bench
