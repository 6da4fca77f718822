// SPDX-License-Identifier: BSD-3-Clause
// May this process write into another one (CMA)? Found out once for each process.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace hier {

// Another process, as this one reaches it.
struct CmaTarget {
    std::int32_t pid;
    std::uint64_t token;  // a number by chance, which tells processes apart
    std::uint64_t words;  // where the process keeps its token, and behind it a word for writers
};

// This process, as others reach it. They may do so until the process ends.
CmaTarget own_cma_target();

// Reads the token of each process, and then writes a word into it. So a process id that leads to
// another process, because it belongs to another namespace, does no harm. Returns "" or why one of
// them cannot be written. Asks nobody a second time that has agreed. Local.
std::string try_cma(std::span<const CmaTarget> targets);
// Seconds of a copy of one word into another process, the quickest of those that try_cma() has timed. 0: none. Local.
double cma_start();

}  // namespace hier
