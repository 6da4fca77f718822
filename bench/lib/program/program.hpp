// SPDX-License-Identifier: BSD-3-Clause
// The steps of every program before and after its work.
#pragma once

#include "bench/lib/options/options.hpp"

#include <string>

namespace bench {

inline constexpr int exit_wrong = 1;
inline constexpr int exit_usage = 2;

// Rank 0 prints the message. Returns `status`.
int complain(int rank, Program program, int status, const std::string& message);

// The body of main(): sets MPI up, reads the command line and calls `run` on every rank. Returns the
// exit status, which `run` decides.
int run_program(int argc, char** argv, Program program, int (*run)(int rank, Options& options));

// Ends all ranks. Use it when one rank fails and the others would wait in a call for ever.
[[noreturn]] void give_up(const std::string& what);

}  // namespace bench
