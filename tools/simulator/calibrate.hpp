// SPDX-License-Identifier: BSD-3-Clause
// Simulated against measured.
//
// Each line of the file: layout (4+4), bytes a rank, measured us, options of bench/simulate for the
// machine and the algorithm, source. Lines that begin with # are comments; the first other line
// names the columns.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"

namespace bench::simulator {

struct Measurement {
    Options options;
    double seconds = 0;
    std::string machine, source;  // as in the file
};

// Empty, or what is wrong, with the line's number.
[[nodiscard]] std::string read_measurements(const std::string& file,
                                            std::vector<Measurement>& measurements);

}  // namespace bench::simulator
