// SPDX-License-Identifier: BSD-3-Clause
// Prints a table for each size, and writes CSV rows.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "algorithms.hpp"
#include "calibrate.hpp"

namespace bench::simulator {

[[nodiscard]] std::string text_of(const std::vector<int>& ranks_of);  // "8x128", "4+2+1"

void print_machine(const Options& options);
void print_table(const Options& options, std::size_t bytes, const std::vector<Result>& results);
void print_footprint(const Options& options, std::size_t bytes, const Result& result);
// Empty, or why the rows could not be written.
[[nodiscard]] std::string append_csv(const Options& options, std::size_t bytes,
                                     const std::vector<Result>& results);
// One line for each measurement. Throws std::runtime_error.
void print_calibration(const std::vector<Measurement>& measurements);

}  // namespace bench::simulator
