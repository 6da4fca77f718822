// SPDX-License-Identifier: BSD-3-Clause
// Families of derived datatypes. All members of a family have the same signature.
#pragma once

#include "layout.hpp"

#include <string>
#include <utility>
#include <vector>

namespace hier_test {

// A layout, and the number of its items that make up the family's signature.
struct Form {
    Layout layout;
    int items;
    bool send_only;  // items of consecutive ranks would overlap
};

struct Family {
    std::string name;
    std::size_t bytes;  // of the signature
    std::vector<Form> forms;
    std::vector<std::size_t> receiving;  // the forms that may receive
};

inline Family finished(std::string name, std::size_t bytes, std::vector<Form> forms)
{
    Family family{std::move(name), bytes, std::move(forms), {}};
    for (std::size_t i = 0; i < family.forms.size(); ++i) {
        if (!family.forms[i].send_only) {
            family.receiving.push_back(i);
        }
    }
    return family;
}

// The signature: 72 * scale ints.
inline Family family_of_ints(int ranks, int scale)
{
    const int n = 72 * scale;
    const Layout i = Layout::basic(MPI_INT, sizeof(int));
    const Layout gaps = Layout::vector(4, 2, 5, i);
    std::vector<Form> forms;
    const auto add = [&forms](const char* name, const Layout& layout, int items,
                              bool send_only = false) {
        forms.push_back({layout.called(name), items, send_only});
    };
    add("int", i, n);
    add("contiguous", Layout::contiguous(n, i), 1);
    add("vector with gaps", gaps, n / 8);
    add("vector with negative stride", Layout::vector(3, 2, -4, i), n / 6);
    add("indexed with negative lower bound", Layout::indexed({{2, -12}, {1, 8}, {3, 40}}, i),
        n / 6);
    add("indexed, out of order", Layout::indexed({{2, 32}, {1, 0}, {3, 12}}, i), n / 6);
    add("resized, lower bound -8, longer", Layout::resized(-8, 64, Layout::contiguous(4, i)),
        n / 4);
    add("resized, lower bound 16 behind the data",
        Layout::resized(16, 12, Layout::contiguous(2, i)), n / 2);
    add("struct", Layout::structure({{i, 0}, {Layout::contiguous(2, i), 12}, {i, 28}}), n / 4);
    add("contiguous of vectors", Layout::contiguous(3, gaps), n / 24);
    add("vector of resized",
        Layout::vector(2, 3, 4, Layout::resized(-4, 20, Layout::contiguous(2, i))), n / 12);
    // Each rank has a column of a matrix, so the ints of different ranks alternate.
    add("column", Layout::resized(0, sizeof(int), Layout::vector(n, 1, ranks, i)), 1);
    add("interleaved halves",
        Layout::resized(0, sizeof(int), Layout::indexed({{1, 0}, {1, 2L * n}}, i)), n / 2, true);
    add("one place for all", Layout::resized(0, 0, Layout::contiguous(n, i)), 1, true);
    return finished("ints", static_cast<std::size_t>(n) * sizeof(int), std::move(forms));
}

// The signature: 24 * scale times an int, a double and two chars.
inline Family family_of_records(int scale)
{
    const int n = 24 * scale;
    const Layout i = Layout::basic(MPI_INT, sizeof(int));
    const Layout d = Layout::basic(MPI_DOUBLE, sizeof(double));
    const Layout cc = Layout::contiguous(2, Layout::basic(MPI_CHAR, 1));
    const Layout natural = Layout::resized(0, 24, Layout::structure({{i, 0}, {d, 8}, {cc, 16}}));
    std::vector<Form> forms{
        {Layout::structure({{i, 0}, {d, 4}, {cc, 12}}).called("packed record"), n, false},
        {natural.called("record"), n, false},
        {Layout::structure({{i, 32}, {d, 16}, {cc, 0}}).called("record from behind"), n, false},
        {Layout::contiguous(4, natural).called("four records"), n / 4, false},
        {Layout::vector(2, 1, 3, natural).called("records with gaps"), n / 2, false},
    };
    return finished("records", static_cast<std::size_t>(n) * 14, std::move(forms));
}

// The signature: nothing. There is no form of 0 items, because Open MPI 4.1 returns from such a call before any module
// sees the call. A rank with 0 items would leave the others waiting, with any module.
inline Family family_of_nothing()
{
    const Layout i = Layout::basic(MPI_INT, sizeof(int));
    const Layout none = Layout::contiguous(0, i);
    std::vector<Form> forms{
        {none.called("empty type"), 5, false},
        {Layout::resized(-4, 12, none).called("empty type with an extent"), 3, false}};
    return finished("nothing", 0, std::move(forms));
}

}  // namespace hier_test
