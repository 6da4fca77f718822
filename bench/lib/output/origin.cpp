// SPDX-License-Identifier: BSD-3-Clause
#include "origin.hpp"

#include "bench/lib/machine/environment.hpp"
#include "csv.hpp"

#include <cstdio>

namespace bench {

std::vector<std::string> origin(const Options& options, const Layout& layout)
{
    return {utc_now(),
            host_name(),
            kernel_release(),
            mpi_version(),
            ucx_version(),
            commit(),
            options.label,
            coll_selection(),
            std::to_string(layout.nodes()),
            std::to_string(layout.ranks()),
            layout.text()};
}

void print_versions()
{
    std::printf("# %s, kernel %s, %s, UCX %s, commit %s\n", host_name().c_str(),
                kernel_release().c_str(), mpi_version().c_str(), or_dash(ucx_version()).c_str(),
                commit().c_str());
}

void print_link(const Link& link)
{
    if (!link.source.empty()) {
        std::printf("# link: %s MB/s a node and direction (%s)\n",
                    or_dash(known(link.rate / 1e6, 2)).c_str(), link.source.c_str());
    }
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace bench
