// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>

#include "api/guard.hpp"

namespace hier {
namespace {

// In the order of Status.
constexpr int codes[] = {HIER_OK,         HIER_IN_PROGRESS,  HIER_ERR_ARGUMENT,
                         HIER_ERR_MEMORY, HIER_ERR_MISMATCH, HIER_ERR_TRANSPORT,
                         HIER_ERR_PEER,   HIER_ERR_TIMEOUT};
static_assert(std::size(codes) == static_cast<std::size_t>(Status::timed_out) + 1);

bool is_status(int code)
{
    return std::find(std::begin(codes), std::end(codes), code) != std::end(codes);
}

}  // namespace

int code_of(Status status) { return codes[static_cast<std::size_t>(status)]; }

Status status_of(int code)
{
    const auto* const found = std::find(std::begin(codes), std::end(codes), code);
    return static_cast<Status>(found - std::begin(codes));
}

}  // namespace hier

const char* hier_strerror(int code)
{
    if (code == HIER_ERR_SETUP) return "the groups could not be set up";
    return hier::is_status(code) ? hier::to_string(hier::status_of(code)) : "unknown code";
}
