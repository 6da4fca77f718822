// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace hier {

// Is it memory of the program itself: its data, its heap, or the stack of its first thread? No GPU's runtime allocates
// there, so the CPU reaches it, and a look takes 10 ns. False says nothing: large blocks of malloc are elsewhere.
bool is_of_program(const void* address);

}  // namespace hier
