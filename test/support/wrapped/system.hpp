// SPDX-License-Identifier: BSD-3-Clause
// System calls that fail if a test says so. Otherwise they are the real ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hier::test {

struct WrappedCall {
    int fail_at = 0;  // this call fails, counted from 1; 0: none
    int error = 0;    // the errno of the failure
    int calls = 0;    // so far

    bool always = false;

    bool fails() { return ++calls == fail_at || always; }
    void fail_nth(int nth, int with) { *this = {calls + nth, with, calls, false}; }
    void fail_all(int with) { *this = {0, with, calls, true}; }
};

inline WrappedCall memfd_call, shm_open_call, fallocate_call, mmap_call;
// open() of files of other processes, by a name under /proc.
inline WrappedCall open_call;
// open() of such a file gives other memory.
inline bool opens_another = false;

// pidfd_getfd() of a descriptor of another process.
inline WrappedCall getfd_call;
// Runs before each of these calls.
inline void (*before_getfd)() = nullptr;

// How process_vm_writev behaves.
enum class Writev {
    works,
    is_refused,   // EPERM
    faults,       // EFAULT, as for memory that no other process may write
    pretends,     // success, and nothing written; the process is another one
    interrupted,  // a signal interrupts every other call; the others write a part
    ends_early    // writes nothing more, without an error
};
inline Writev writev_mode = Writev::works;
inline std::atomic<int> writev_calls = 0;  // of all threads
inline Writev readv_mode = Writev::works;  // the same of process_vm_readv; but it never pretends
inline int readv_calls = 0;
inline void (*before_readv)() = nullptr;
inline void (*before_writev)() = nullptr;

// pread() of /proc/self/pagemap finds this value for every page; 0: the file cannot be read.
inline std::optional<std::uint64_t> pagemap_says;
// Calls of dlopen() with a name that has no directory: such a library is looked for on disk.
inline int dlopen_searches = 0;
// Runs after dl_iterate_phdr() has visited the libraries, in the same thread.
inline void (*after_dl_iterate_phdr)() = nullptr;

}  // namespace hier::test
