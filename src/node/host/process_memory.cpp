// SPDX-License-Identifier: BSD-3-Clause
#include "node/host/process_memory.hpp"

#include <sys/uio.h>

#include <cerrno>
#include <filesystem>

#include "base/error.hpp"

namespace hier {
namespace {

using Call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                         unsigned long);

int move(Call call, int pid, std::byte* own, std::uint64_t other, std::size_t bytes)
{
    std::size_t done = 0;
    while (done < bytes) {
        const iovec local{own + done, bytes - done};
        const iovec remote{reinterpret_cast<void*>(other + done), bytes - done};
        const ssize_t moved = call(pid, &local, 1, &remote, 1, 0);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return moved < 0 ? errno : EIO;
        done += static_cast<std::size_t>(moved);
    }
    return 0;
}

// The kernel does not find a process's memory once its main thread has ended. The process may still
// have other threads.
bool lives_on(int pid)
{
    const std::filesystem::directory_iterator end;
    std::error_code error;
    std::filesystem::directory_iterator thread(format("/proc/%d/task", pid), error);
    if (!error && thread != end) thread.increment(error);  // the process may be gone by now
    return !error && thread != end;
}

}  // namespace

int write_memory(int pid, const std::byte* from, std::uint64_t to, std::size_t bytes)
{
    return move(process_vm_writev, pid, const_cast<std::byte*>(from), to, bytes);
}

int read_memory(int pid, std::byte* to, std::uint64_t from, std::size_t bytes)
{
    return move(process_vm_readv, pid, to, from, bytes);
}

bool is_refusal(int cause, int pid)
{
    return cause == EFAULT || cause == EPERM || (cause == ESRCH && lives_on(pid));
}

}  // namespace hier
