// SPDX-License-Identifier: BSD-3-Clause
// A control variable (MPI_T) of the library under test, with a whole number as its value.
#pragma once

#include <mpi.h>

#include <optional>

namespace bench {

class Control {
public:
    explicit Control(const char* name);
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;
    ~Control();

    // This process's value; nothing if the library has no such variable.
    [[nodiscard]] std::optional<int> read() const;
    // False: the variable cannot be set.
    [[nodiscard]] bool write(int value) const;

private:
    bool tools_ = false;
    MPI_T_cvar_handle handle_ = MPI_T_CVAR_HANDLE_NULL;
};

}  // namespace bench
