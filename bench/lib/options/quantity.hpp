// SPDX-License-Identifier: BSD-3-Clause
// Numbers as people type them: sizes (64k), counts, seconds, rates (1gbit, 50GB), durations (5us).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace bench {

// "4097", "64k", "1m", "1g": suffixes are powers of 1024, either case.
[[nodiscard]] std::optional<std::size_t> parse_size(std::string_view text);

// "64k,256k,1m" is a list; "1k:1m" doubles from the first size to the last; "none" is empty.
[[nodiscard]] std::optional<std::vector<std::size_t>> parse_sizes(std::string_view text);

// A whole decimal number in [low, high].
[[nodiscard]] std::optional<long> parse_count(std::string_view text, long low, long high);

// A decimal number above zero.
[[nodiscard]] std::optional<double> parse_positive(std::string_view text);

// Bytes per second, plain or with kB, MB or GB; or bits per second with kbit, mbit or gbit. All units
// are powers of 1000.
[[nodiscard]] std::optional<double> parse_rate(std::string_view text);

// Seconds, zero or more: a number with ns, us, ms or s.
[[nodiscard]] std::optional<double> parse_duration(std::string_view text);

}  // namespace bench
