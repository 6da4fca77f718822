// SPDX-License-Identifier: BSD-3-Clause
#include "node/host/cma_trial.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <utility>

#include "base/error.hpp"

namespace hier {
namespace {

struct Words {
    std::uint64_t token;
    std::atomic<std::uint64_t> written;  // by others: the token
    std::int32_t pid;                    // of the process that chose the token
};
Words words;
std::mutex mutex;
double least_start = 0;  // seconds of a copy of one word; 0: not timed yet

using Reached = std::set<std::pair<std::int32_t, std::uint64_t>>;
Reached& reached()
{
    static Reached processes;
    return processes;
}

using Call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long,
                         unsigned long);

// Returns 0 or an errno.
int move(Call call, std::int32_t pid, std::uint64_t& value, std::uint64_t there)
{
    for (std::size_t done = 0; done < sizeof value;) {
        const iovec local{reinterpret_cast<std::byte*>(&value) + done, sizeof value - done};
        const iovec remote{reinterpret_cast<void*>(there + done), sizeof value - done};
        const ssize_t moved = call(pid, &local, 1, &remote, 1, 0);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return moved < 0 ? errno : EIO;
        done += static_cast<std::size_t>(moved);
    }
    return 0;
}

// The first copies into a process are slower than later ones.
double time_writes(const CmaTarget& target)
{
    using Clock = std::chrono::steady_clock;
    constexpr int times = 8;
    std::uint64_t value = target.token;
    Clock::duration least = Clock::duration::max();
    for (int i = 0; i < times; i++) {
        const Clock::time_point before = Clock::now();
        (void)move(process_vm_writev, target.pid, value, target.words + offsetof(Words, written));
        least = std::min(least, Clock::now() - before);
    }
    return std::chrono::duration<double>(least).count();
}

std::string refusal_of(const CmaTarget& target)
{
    std::uint64_t value = 0;
    int cause = move(process_vm_readv, target.pid, value, target.words);
    const bool is_read = cause == 0;
    if (is_read && value != target.token) return "a process id leads to another process";
    if (is_read)
        cause = move(process_vm_writev, target.pid, value, target.words + offsetof(Words, written));
    return cause == 0 ? ""
                      : format("process_vm_%s process %d: %s", is_read ? "writev to" : "readv from",
                               static_cast<int>(target.pid), std::strerror(cause));
}

}  // namespace

CmaTarget own_cma_target()
{
    const std::lock_guard lock(mutex);
    const auto self = static_cast<std::int32_t>(getpid());
    if (words.pid != self) {  // none yet, or that of a parent process
        std::random_device random;
        words.token = std::uint64_t{random()} << 32 | random();
        words.pid = self;
    }
    return {self, words.token, reinterpret_cast<std::uint64_t>(&words)};
}

std::string try_cma(std::span<const CmaTarget> targets)
{
    const std::lock_guard lock(mutex);
    for (const CmaTarget& target : targets) {
        const std::pair process{target.pid, target.token};
        if (reached().contains(process)) continue;
        std::string refusal = refusal_of(target);
        if (!refusal.empty()) return refusal;
        reached().insert(process);
        // Into its own memory a process copies without being asked for its rights.
        if (least_start == 0 && target.pid != getpid()) least_start = time_writes(target);
    }
    return "";
}

double cma_start()
{
    const std::lock_guard lock(mutex);
    return least_start;
}

}  // namespace hier
