// SPDX-License-Identifier: BSD-3-Clause
// Compares simulated times with measured ones.
//
// Each line of the file has the layout (4+4), the bytes of a rank, the measured us, the options of
// bench/simulate for machine and algorithm, and the source. Lines that begin with # are comments.
// The first other line names the columns.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"

namespace bench::simulator {

struct Measurement {
    Options options;
    double seconds = 0;
    std::string machine, source;  // as the file has them
};

// Empty, or an error with the number of the line.
[[nodiscard]] std::string read_measurements(const std::string& file,
                                            std::vector<Measurement>& measurements);

}  // namespace bench::simulator
