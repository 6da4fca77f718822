// SPDX-License-Identifier: BSD-3-Clause
#include "node/host/cma_trial.hpp"

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
#include "node/host/process_memory.hpp"

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

// Each returns 0 or an errno.
int read_token(const CmaTarget& from, std::uint64_t& value)
{
    return read_memory(from.pid, reinterpret_cast<std::byte*>(&value), from.words, sizeof value);
}

int write_token(const CmaTarget& to)
{
    return write_memory(to.pid, reinterpret_cast<const std::byte*>(&to.token),
                        to.words + offsetof(Words, written), sizeof to.token);
}

// The first copies into a process are slower than later ones.
double time_writes(const CmaTarget& target)
{
    using Clock = std::chrono::steady_clock;
    constexpr int times = 8;
    Clock::duration least = Clock::duration::max();
    for (int i = 0; i < times; i++) {
        const Clock::time_point before = Clock::now();
        (void)write_token(target);
        least = std::min(least, Clock::now() - before);
    }
    return std::chrono::duration<double>(least).count();
}

std::string refusal_of(const CmaTarget& target)
{
    std::uint64_t value = 0;
    int cause = read_token(target, value);
    const bool is_read = cause == 0;
    if (is_read && value != target.token) return "a process id leads to another process";
    if (is_read) cause = write_token(target);
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
