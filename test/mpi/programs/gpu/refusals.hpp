// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "other_calls.hpp"

namespace hier_test {

// Calls that are not served on device memory: an error, a line that names the call, untouched
// buffers, and a communicator that works afterwards. In memory of the host they go on.
void run_refusals(Session& session, std::mt19937& random);

}  // namespace hier_test
