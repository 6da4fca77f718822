// SPDX-License-Identifier: BSD-3-Clause
// Rank 0's output: a table for people, rows for programs.
#pragma once

#include "bench/lib/machine/layout.hpp"
#include "bench/lib/machine/link.hpp"
#include "bench/lib/options/options.hpp"
#include "bench/lib/timing/measure.hpp"
#include "csv.hpp"

#include <string>

namespace bench {

// The call that was measured, and its GPU runtime.
struct Subject {
    std::string call;         // MPI_Allgather, ncclAllGather plain
    std::string gpu_runtime;  // name and version; empty: none was needed
};

class Report {
public:
    Report(const Options& options, const Layout& layout, const Link& link, Subject subject);

    // Opens the CSV file if one was asked for. Returns the reason if that fails.
    [[nodiscard]] std::string open();
    void print_header() const;
    // Returns the reason if the row could not be written.
    [[nodiscard]] std::string add(const Measurement& measurement) const;

private:
    struct Derived {
        double bytes_per_second;  // into the busiest node, at the median time
        double bound;             // seconds; 0: the link's rate is not known
        double ratio;             // median / bound; 0: not known
    };
    [[nodiscard]] Derived derive(const Measurement& measurement) const;
    void print(const Measurement& measurement, const Derived& derived) const;
    [[nodiscard]] std::string write(const Measurement& measurement, const Derived& derived) const;

    const Options& options_;
    const Layout& layout_;
    const Link& link_;
    Subject subject_;
    Csv csv_;
};

}  // namespace bench
