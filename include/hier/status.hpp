// SPDX-License-Identifier: BSD-3-Clause
// The result of an operation on the data path. Set-up code throws instead (see src/base/error.hpp).
#pragma once

namespace hier {

enum class [[nodiscard]] Status{
    ok,
    in_progress,   // not an error: ask again later
    bad_argument,  // the caller broke a documented rule
    out_of_memory,
    mismatch,         // ranks passed different sizes to one collective
    transport_error,  // a copy, a put or a registration failed
    peer_failed,      // another rank of the team reported an error
    timed_out,        // every rank is in the call, but nothing moves
};

constexpr bool failed(Status status)
{
    return status != Status::ok && status != Status::in_progress;
}

const char* to_string(Status status);

}  // namespace hier
