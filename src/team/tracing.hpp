// SPDX-License-Identifier: BSD-3-Clause
// The tracer of a team, if the user asks for traces.
#pragma once

#include <memory>

#include "exec/tracer.hpp"
#include "team/setup.hpp"

namespace hier {

// nullptr: no call is traced.
std::unique_ptr<Tracer> make_tracer(const TeamSetup& setup, int rank);

}  // namespace hier
