// SPDX-License-Identifier: BSD-3-Clause
// What a figure depends on besides the code that it measures.
#pragma once

#include <string>

namespace bench {

[[nodiscard]] std::string host_name();
[[nodiscard]] std::string kernel_release();
[[nodiscard]] std::string mpi_version();     // "Open MPI v4.1.4"
[[nodiscard]] std::string ucx_version();     // empty when this process has not loaded UCX
[[nodiscard]] std::string commit();          // of the sources this was built from, or "unknown"
[[nodiscard]] std::string utc_now();         // "2030-01-31T23:59:59Z"
[[nodiscard]] std::string coll_selection();  // the MCA list given to mpirun; empty: Open MPI's own

}  // namespace bench
