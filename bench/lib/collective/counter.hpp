// SPDX-License-Identifier: BSD-3-Clause
// A counter that the library under test publishes through MPI_T, such as the number of allgathers
// that a component has served.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>

namespace bench {

class Counter {
public:
    explicit Counter(const char* name);
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;
    ~Counter();

    // This process's value; nothing if the library has no such counter.
    [[nodiscard]] std::optional<std::uint64_t> read() const;

private:
    void open(const char* name);

    bool tools_ = false;
    MPI_T_pvar_session session_ = MPI_T_PVAR_SESSION_NULL;
    MPI_T_pvar_handle handle_ = MPI_T_PVAR_HANDLE_NULL;
    int value_bytes_ = 0;
};

// `counter` may be nullptr; then the result is nothing.
[[nodiscard]] std::optional<std::uint64_t> read(const Counter* counter);

// Collective. How much the counter has grown since `before`, on the rank where it grew least;
// nothing if any rank has no counter.
[[nodiscard]] std::optional<std::uint64_t> fewest_counted(MPI_Comm comm, const Counter* counter,
                                                          std::optional<std::uint64_t> before);

}  // namespace bench
