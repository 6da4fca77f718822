// SPDX-License-Identifier: BSD-3-Clause
// Rank 0's output of bench/gpu_overlap.
#pragma once

#include "bench/lib/machine/layout.hpp"
#include "bench/lib/options/options.hpp"
#include "bench/lib/output/csv.hpp"
#include "overlap.hpp"

#include <string>

namespace bench {

class OverlapReport {
public:
    OverlapReport(const Options& options, const Layout& layout, std::string gpu_runtime);

    // Returns the reason if the CSV file cannot be opened.
    [[nodiscard]] std::string open();
    void print_header() const;
    // Returns the reason if the row could not be written.
    [[nodiscard]] std::string add(const std::string& by, const Overlap& overlap) const;

private:
    const Options& options_;
    const Layout& layout_;
    std::string gpu_runtime_;
    Csv csv_;
};

}  // namespace bench
