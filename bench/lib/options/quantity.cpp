// SPDX-License-Identifier: BSD-3-Clause
#include "quantity.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace bench {
namespace {

template <typename Number> std::optional<Number> parse_number(std::string_view text)
{
    Number value{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end) {
        return std::nullopt;
    }
    return value;
}

unsigned shift_of(char suffix)
{
    switch (suffix) {
    case 'k':
    case 'K':
        return 10;
    case 'm':
    case 'M':
        return 20;
    case 'g':
    case 'G':
        return 30;
    default:
        return 0;
    }
}

std::optional<std::vector<std::size_t>> doubling(std::size_t low, std::size_t high)
{
    if (low == 0 || high < low) {
        return std::nullopt;
    }
    std::vector<std::size_t> sizes;
    for (std::size_t size = low; size <= high; size *= 2) {
        sizes.push_back(size);
        if (size > high / 2) {
            break;
        }
    }
    return sizes;
}

}  // namespace

std::optional<std::size_t> parse_size(std::string_view text)
{
    const unsigned shift = text.empty() ? 0 : shift_of(text.back());
    if (shift != 0) {
        text.remove_suffix(1);
    }
    const auto value = parse_number<std::size_t>(text);
    if (!value || *value > (std::numeric_limits<std::size_t>::max() >> shift)) {
        return std::nullopt;
    }
    return *value << shift;
}

std::optional<std::vector<std::size_t>> parse_sizes(std::string_view text)
{
    std::vector<std::size_t> sizes;
    if (text == "none") {
        return sizes;
    }
    if (const auto colon = text.find(':'); colon != std::string_view::npos) {
        const auto low = parse_size(text.substr(0, colon));
        const auto high = parse_size(text.substr(colon + 1));
        return low && high ? doubling(*low, *high) : std::nullopt;
    }
    while (true) {
        const auto comma = text.find(',');
        const auto size = parse_size(text.substr(0, comma));
        if (!size) {
            return std::nullopt;
        }
        sizes.push_back(*size);
        if (comma == std::string_view::npos) {
            return sizes;
        }
        text.remove_prefix(comma + 1);
    }
}

std::optional<long> parse_count(std::string_view text, long low, long high)
{
    const auto value = parse_number<long>(text);
    return value && *value >= low && *value <= high ? value : std::nullopt;
}

std::optional<double> parse_positive(std::string_view text)
{
    const auto value = parse_number<double>(text);
    return value && std::isfinite(*value) && *value > 0.0 ? value : std::nullopt;
}

std::optional<double> parse_rate(std::string_view text)
{
    static constexpr std::array<std::pair<std::string_view, double>, 6> units{{{"kbit", 1e3 / 8},
                                                                               {"mbit", 1e6 / 8},
                                                                               {"gbit", 1e9 / 8},
                                                                               {"kB", 1e3},
                                                                               {"MB", 1e6},
                                                                               {"GB", 1e9}}};
    double bytes_per_unit = 1.0;
    for (const auto& [unit, bytes] : units) {
        if (text.ends_with(unit)) {
            text.remove_suffix(unit.size());
            bytes_per_unit = bytes;
        }
    }
    const auto value = parse_positive(text);
    return value ? std::optional<double>(*value * bytes_per_unit) : std::nullopt;
}

std::optional<double> parse_duration(std::string_view text)
{
    static constexpr std::array<std::pair<std::string_view, double>, 4> units{
        {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}}};
    for (const auto& [unit, seconds] : units) {
        if (text.ends_with(unit)) {
            text.remove_suffix(unit.size());
            const auto value = parse_number<double>(text);
            const bool is_valid = value && std::isfinite(*value) && *value >= 0.0;
            return is_valid ? std::optional<double>(*value * seconds) : std::nullopt;
        }
    }
    return std::nullopt;
}

}  // namespace bench
