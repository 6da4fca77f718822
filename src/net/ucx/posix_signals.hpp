// SPDX-License-Identifier: BSD-3-Clause
// UCX takes the signals of errors (SIGSEGV and others) when it is loaded, to print where it happened,
// also from an application that has handlers of its own.
#pragma once

namespace hier {

// Gives them back to whoever had them before, where UCX is loaded for our sake and nobody has asked
// for its handlers (UCX_ERROR_SIGNALS, UCX_HANDLE_ERRORS).
void give_signals_back();

}  // namespace hier
