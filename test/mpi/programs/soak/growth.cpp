// SPDX-License-Identifier: BSD-3-Clause
#include "growth.hpp"

#include <algorithm>

namespace hier_test::soak {

double Growth::median(std::size_t figure, std::size_t from, std::size_t to) const
{
    std::vector<double> values;
    for (std::size_t i = from; i < to; ++i) {
        values.push_back(series_[i][figure].value - series_[i][figure].known_loss);
    }
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

std::vector<std::string> Growth::found() const
{
    std::vector<std::string> texts;
    const std::size_t count = series_.size();
    if (count < min_readings) {
        return {"only " + std::to_string(count) + " readings after the warm-up"};
    }
    for (std::size_t figure = 0; figure < series_.front().size(); ++figure) {
        const Figure& last = series_.back()[figure];
        const double before = median(figure, 0, (count + 2) / 3);
        const double after = median(figure, count - (count + 2) / 3, count);
        if (after > before + last.slack) {
            char text[200];
            std::snprintf(
                text, sizeof text,
                "%s: %.0f at first, %.0f at the end (without what Open MPI loses), %.0f allowed",
                last.name.c_str(), before, after, last.slack);
            texts.emplace_back(text);
        }
    }
    return texts;
}

}  // namespace hier_test::soak
