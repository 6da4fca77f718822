// SPDX-License-Identifier: BSD-3-Clause
#include "types.hpp"

#include <numeric>

namespace hier_test::fuzz {

namespace {

// Longer lists of ranges take more time than the call.
constexpr std::size_t max_ranges = 20000;

Layout byte() { return Layout::basic(MPI_BYTE, 1); }
Layout integer() { return Layout::basic(MPI_INT, sizeof(int)); }

std::vector<Layout> draw_unit(Random& random)
{
    const Layout real = Layout::basic(MPI_DOUBLE, sizeof(double));
    const Layout character = Layout::basic(MPI_CHAR, 1);
    const Layout half = Layout::basic(MPI_SHORT, sizeof(short));
    switch (random.below(8)) {
    case 0:
        return {integer()};
    case 1:
        return {real};
    case 2:
        return {half, integer()};
    case 3:
        return {integer(), real, character, character};
    case 4:
        return {character, half, real};
    default:
        return {byte()};
    }
}

std::string numbers(std::initializer_list<long> values)
{
    std::string text;
    for (const long value : values) {
        text += (text.empty() ? "" : ",") + std::to_string(value);
    }
    return text;
}

// The unit's parts one behind the other, as in the signature.
Layout packed_unit(const Signature& signature)
{
    if (signature.unit.size() == 1) {
        return signature.unit.front().called("basic");
    }
    std::vector<std::pair<Layout, MPI_Aint>> parts;
    MPI_Aint at = 0;
    for (const Layout& part : signature.unit) {
        parts.emplace_back(part, at);
        at += part.extent();
    }
    return Layout::structure(parts).called("packed struct");
}

// The unit's parts in random order in memory, with gaps, from an address that may be negative.
Layout spread_unit(Random& random, const Signature& signature)
{
    std::vector<std::size_t> order(signature.unit.size());
    std::iota(order.begin(), order.end(), 0UL);
    shuffle(random, order);
    std::vector<std::pair<Layout, MPI_Aint>> parts;
    for (const Layout& part : signature.unit) {
        parts.emplace_back(part, 0);
    }
    MPI_Aint at = static_cast<MPI_Aint>(random.between(0, 24)) - 12;
    for (const std::size_t which : order) {
        at += static_cast<MPI_Aint>(random.one_in(2) ? 0 : random.between(0, 9));
        parts[which].second = at;
        at += parts[which].first.extent();
    }
    return Layout::structure(parts).called("spread struct");
}

// A divisor of n above 1, most often a small one.
std::size_t draw_factor(Random& random, std::size_t n)
{
    constexpr std::size_t max_steps = 64;
    std::vector<std::size_t> found;
    for (std::size_t i = 2; i <= std::min(n, max_steps); ++i) {
        if (n % i == 0) found.push_back(i);
    }
    return found.empty() || random.one_in(6) ? n : found[random.between(0, found.size() - 1)];
}

Layout vector_of(Random& random, std::size_t n, const Layout& inner)
{
    const auto count = static_cast<int>(n > 1 && random.one_in(2) ? draw_factor(random, n) : n);
    const int length = static_cast<int>(n) / count;
    int stride = (length + random.number_below(3)) * (random.one_in(3) ? -1 : 1);
    // Open MPI 4.1 takes a vector of single items backwards for one forwards.
    if (stride == -1) stride = -2;
    return Layout::vector(count, length, stride, inner)
        .called(("vector(" + numbers({count, length, stride}) + ") of " + inner.name).c_str());
}

// Up to six parts, in random order in memory.
Layout indexed_of(Random& random, std::size_t n, const Layout& inner)
{
    std::vector<std::pair<int, MPI_Aint>> parts;
    for (std::size_t left = n; left > 0;) {
        const std::size_t length = parts.size() == 5 ? left : random.between(1, left);
        parts.emplace_back(static_cast<int>(length), 0);
        left -= length;
    }
    std::vector<std::size_t> order(parts.size());
    std::iota(order.begin(), order.end(), 0UL);
    shuffle(random, order);
    MPI_Aint at = static_cast<MPI_Aint>(random.between(0, 40)) - 20;
    for (const std::size_t which : order) {
        parts[which].second = at;
        at += parts[which].first * inner.extent() +
              static_cast<MPI_Aint>(random.one_in(2) ? 0 : random.between(0, 17));
    }
    return Layout::indexed(parts, inner)
        .called(("indexed(" + std::to_string(parts.size()) + ") of " + inner.name).c_str());
}

// Other bounds. The extent is at least that of the bytes, so that items never overlap.
Layout resized(Random& random, const Layout& inner)
{
    std::ptrdiff_t first = inner.ranges.front().offset;
    std::ptrdiff_t last = first;
    for (const Range& range : inner.ranges) {
        first = std::min(first, range.offset);
        last = std::max(last, range.offset + static_cast<std::ptrdiff_t>(range.bytes));
    }
    const auto lower = first + static_cast<std::ptrdiff_t>(random.between(0, 64)) - 32;
    const auto extent =
        last - first + static_cast<std::ptrdiff_t>(random.one_in(2) ? 0 : random.between(0, 24));
    return Layout::resized(lower, extent, inner)
        .called(("resized(" + numbers({lower, extent}) + ") of " + inner.name).c_str());
}

Layout wrapped(Random& random, std::size_t n, const Layout& inner)
{
    switch (random.below(3)) {
    case 0:
        return vector_of(random, n, inner);
    case 1:
        return indexed_of(random, n, inner);
    default:
        return Layout::contiguous(static_cast<int>(n), inner)
            .called(("contiguous(" + std::to_string(n) + ") of " + inner.name).c_str());
    }
}

// Each block is a column of a matrix, so the units of different ranks alternate.
Form column(const Signature& signature, std::size_t units, int blocks)
{
    const Layout unit = packed_unit(signature);
    const Layout all = Layout::vector(static_cast<int>(units), 1, blocks, unit);
    return {Layout::resized(0, unit.extent(), all).called("column"), 1};
}

Form plain(Random& random, const Signature& signature, std::size_t units)
{
    const Layout unit = packed_unit(signature);
    const auto count = static_cast<int>(units);
    return random.one_in(3) ? Form{Layout::contiguous(count, unit).called("contiguous"), 1}
                            : Form{unit, count};
}

Form nested(Random& random, const Signature& signature, std::size_t units)
{
    Layout layout = spread_unit(random, signature);
    std::size_t left = units;
    const std::size_t levels = random.between(0, 3);
    for (std::size_t level = 0; level < levels; ++level) {
        if (random.one_in(3)) layout = resized(random, layout);
        if (left > 1) {
            const std::size_t n = draw_factor(random, left);
            layout = wrapped(random, n, layout);
            left /= n;
        }
    }
    return {layout, static_cast<int>(left)};
}

}  // namespace

Signature draw_signature(Random& random)
{
    Signature signature{draw_unit(random), 0};
    for (const Layout& part : signature.unit) {
        signature.unit_bytes += static_cast<std::size_t>(part.extent());
    }
    return signature;
}

Form draw_form(Random& random, const Signature& signature, std::size_t units, int blocks)
{
    const std::size_t parts = units * signature.unit.size() * static_cast<std::size_t>(blocks);
    if (parts > max_ranges || random.one_in(2)) {
        return plain(random, signature, units);
    }
    return random.one_in(10) ? column(signature, units, blocks) : nested(random, signature, units);
}

Form draw_empty_form(Random& random, const Signature& signature, bool has_items)
{
    if (!has_items) {
        return {spread_unit(random, signature), 0};
    }
    const Layout none = Layout::contiguous(0, integer());
    return {random.one_in(2) ? none.called("empty type")
                             : Layout::resized(-4, 12, none).called("resized empty type"),
            1 + random.number_below(5)};
}

}  // namespace hier_test::fuzz
