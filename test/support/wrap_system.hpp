// SPDX-License-Identifier: BSD-3-Clause
// System calls that fail when a test says so.
//
// Takes effect in a program that has wrap_system.cpp and the linker flags there.
#pragma once

#include <cstddef>

namespace hier::test {

struct WrappedCall {
    int fail_at = 0;  // the n-th call from now fails, counted from 1; 0: none
    int error = 0;    // with this errno
    int calls = 0;    // so far

    bool always = false;

    bool fails() { return ++calls == fail_at || always; }
    void fail_nth(int nth, int with) { *this = {calls + nth, with, calls, false}; }
    void fail_all(int with) { *this = {0, with, calls, true}; }
};

inline WrappedCall memfd_call, shm_open_call, fallocate_call, mmap_call;
// Of what other processes have under /proc.
inline WrappedCall open_call;
// To open what another process has gives something else.
inline bool opens_another = false;

// Of process_vm_writev.
enum class Writev {
    works,
    is_refused,   // EPERM
    faults,       // EFAULT, as for memory that no other process may write
    pretends,     // success, and nothing written
    interrupted,  // every other call is, by a signal; of the rest each writes a part
    ends_early    // writes nothing more, without an error
};
inline Writev writev_mode = Writev::works;
inline int writev_calls = 0;
inline void (*before_writev)() = nullptr;

}  // namespace hier::test
