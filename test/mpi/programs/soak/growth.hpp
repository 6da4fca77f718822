// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "figures.hpp"

namespace hier_test::soak {

// Finds what grows over a series of measurements. The median of the last third is compared with that of the first third,
// so a single high reading is no leak, and a slow leak shows in a long run.
class Growth {
public:
    void add(const std::vector<Figure>& figures) { series_.push_back(figures); }
    std::size_t readings() const { return series_.size(); }
    // A text for each figure that has grown by more than its slack.
    std::vector<std::string> found() const;

    static constexpr std::size_t min_readings = 3;

private:
    double median(std::size_t figure, std::size_t from, std::size_t to) const;
    std::vector<std::vector<Figure>> series_;
};

}  // namespace hier_test::soak
