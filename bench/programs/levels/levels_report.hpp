// SPDX-License-Identifier: BSD-3-Clause
// Rank 0's output of bench/levels: a table for people, rows for programs.
#pragma once

#include "bench/lib/machine/layout.hpp"
#include "bench/lib/machine/link.hpp"
#include "bench/lib/options/options.hpp"
#include "bench/lib/output/csv.hpp"
#include "levels_bench.hpp"

#include <string>

namespace bench {

class LevelsReport {
public:
    LevelsReport(const Options& options, const Layout& layout, const Link& link,
                 std::string gpu_runtime);

    // Opens the CSV file if one was asked for. Returns the reason if that fails.
    [[nodiscard]] std::string open();
    void print_header() const;
    // Returns the reason if the row could not be written.
    [[nodiscard]] std::string add(const LevelsMeasurement& measurement) const;

private:
    // Seconds that the busiest node's bytes take at the rate of the link; 0: no rate is known.
    [[nodiscard]] double bound(const LevelsMeasurement& measurement) const;
    void print(const LevelsMeasurement& measurement) const;
    [[nodiscard]] std::string write(const LevelsMeasurement& measurement) const;

    const Options& options_;
    const Layout& layout_;
    const Link& link_;
    std::string gpu_runtime_;
    Csv csv_;
};

}  // namespace bench
