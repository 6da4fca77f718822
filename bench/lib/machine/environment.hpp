// SPDX-License-Identifier: BSD-3-Clause
// Host, versions and settings: a figure depends on them as well as on the measured code.
#pragma once

#include <string>

namespace bench {

[[nodiscard]] std::string host_name();
[[nodiscard]] std::string kernel_release();
[[nodiscard]] std::string mpi_version();     // "Open MPI v4.1.4"
[[nodiscard]] std::string ucx_version();     // empty: this process has not loaded UCX
[[nodiscard]] std::string commit();          // of the sources of this program, or "unknown"
[[nodiscard]] std::string utc_now();         // "2030-01-31T23:59:59Z"
[[nodiscard]] std::string coll_selection();  // the list of --mca coll; empty: none was given

}  // namespace bench
