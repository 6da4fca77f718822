// SPDX-License-Identifier: BSD-3-Clause
// Where figures come from: the first columns of most CSV rows, and the first lines of most tables.
#pragma once

#include "bench/lib/machine/layout.hpp"
#include "bench/lib/machine/link.hpp"
#include "bench/lib/options/options.hpp"

#include <string>
#include <vector>

namespace bench {

// The names of the columns that origin() fills.
inline constexpr const char* origin_columns =
    "date,host,kernel,mpi,ucx,commit,label,coll,nodes,ranks,layout";
[[nodiscard]] std::vector<std::string> origin(const Options& options, const Layout& layout);

// Prints the line with host and versions.
void print_versions();
// Prints the line with the rate of the link, if the link has a source.
void print_link(const Link& link);

// The text, or "-" if it is empty.
[[nodiscard]] std::string or_dash(const std::string& text);

}  // namespace bench
