// SPDX-License-Identifier: BSD-3-Clause
// The tracer of a team, if the user asks for traces, and the first lines of a call's trace.
#pragma once

#include <memory>
#include <string>

#include "exec/tracer.hpp"
#include "team/programs.hpp"
#include "team/setup.hpp"

namespace hier {

// nullptr: no call is traced.
std::unique_ptr<Tracer> make_tracer(const TeamSetup& setup, int rank);
// The header of one call.
std::string describe_call(const TeamSetup& setup, const PreparedProgram& prepared);

}  // namespace hier
