// SPDX-License-Identifier: BSD-3-Clause
#include "api/progress_thread.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include <chrono>
#include <system_error>

#include "api/guard.hpp"
#include "api/progress_engine.hpp"
#include "base/log.hpp"
#include "hier/hier.h"
#include "topology/discovery.hpp"

namespace hier {
namespace {

using Clock = std::chrono::steady_clock;
// So long the thread stays awake after the start of a call, and after a movement. A core that sleeps takes some 50 us to
// wake up, so a nap ends up to 70 us late. That is 7 % of the time that has gone by when the first nap begins.
constexpr std::chrono::microseconds wakefulness{1000}, wakefulness_if_shared{5};
constexpr std::chrono::microseconds nap{20};
// By default Linux lets a thread sleep 50 us longer than it asked for.
constexpr unsigned long slack_ns = 1000;

// Whoever looks at a word that others write makes them slower. 32 times take some microseconds.
void pause_core(int times)
{
    for (int i = 0; i < times; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }
}

// Signals are for the application's threads, but for faults: those are the thread's own, and may have
// a handler.
class NoSignals {
public:
    NoSignals()
    {
        sigset_t all;
        sigfillset(&all);
        sigdelset(&all, SIGSEGV);
        sigdelset(&all, SIGBUS);
        sigdelset(&all, SIGFPE);
        sigdelset(&all, SIGILL);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    NoSignals(const NoSignals&) = delete;
    NoSignals& operator=(const NoSignals&) = delete;

private:
    sigset_t before_{};
};

}  // namespace

// Never destroyed: an application may end without MPI_Finalize, and so may a child of it, which has no such thread.
ProgressThread& ProgressThread::instance()
{
    static auto* const thread = new ProgressThread;
    return *thread;
}

void ProgressThread::start()
{
    static std::once_flag flag;
    std::call_once(flag, [&] { start_once(); });
}

void ProgressThread::start_once()
{
    static const pid_t owner = getpid();
    (void)std::atexit([] {
        if (getpid() == owner) instance().stop();
    });
    const NoSignals block;
    try {
        thread_ = std::thread([this] { run(); });
        has_started_ = true;
    } catch (const std::system_error& e) {
        log(HIER_LOG_ERROR, "there is no progress thread: %s", e.what());
    }
}

void ProgressThread::stop()
{
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

// Either the thread sees the wish before it sleeps, or the caller sees that it sleeps.
void ProgressThread::wake()
{
    if (!has_started_) return;
    if (!is_wanted_.load()) is_wanted_.store(true);
    if (is_awake_.load()) return;
    {
        const std::lock_guard lock(mutex_);
    }
    changed_.notify_one();
}

// An awake thread sees the post itself, and does not sleep while it is there.
void ProgressThread::wake_for_post()
{
    if (!is_awake_.load()) wake();
}

bool ProgressThread::moves_calls() const
{
    constexpr std::chrono::microseconds longest_pass{100};
    static thread_local unsigned seen = nobody;
    static thread_local Clock::time_point since;
    const unsigned pass = pass_.load(std::memory_order_relaxed);
    if (pass == nobody) return false;
    const auto now = Clock::now();
    if (pass != seen) since = now;
    seen = pass;
    return now - since < longest_pass;
}

void ProgressThread::run()
{
    // The rank may be bound to the one core that computes.
    leave_core();
    (void)prctl(PR_SET_TIMERSLACK, slack_ns, 0, 0, 0);
    bool is_woken = false;
    while (!is_stopping_) {
        is_awake_.store(true);
        move_calls(is_woken);
        is_awake_.store(false);
        show_pass(false);
        is_woken = sleep();
    }
}

// Until the next call starts, which is true, or for a nap if one runs.
bool ProgressThread::sleep()
{
    std::unique_lock lock(mutex_);
    const auto is_over = [&] { return is_wanted_.load() || is_stopping_.load(); };
    if (ProgressEngine::instance().is_busy())
        changed_.wait_for(lock, nap, is_over);
    else
        changed_.wait(lock, is_over);
    return is_wanted_.exchange(false);
}

// A call that has just started keeps the thread awake for some time, and so does a movement.
void ProgressThread::move_calls(bool is_woken)
{
    ProgressEngine& engine = ProgressEngine::instance();
    const Clock::duration patience =
        shares_core_.load(std::memory_order_relaxed) ? wakefulness_if_shared : wakefulness;
    auto end = Clock::now() + (is_woken ? patience : Clock::duration::zero());
    do {
        const unsigned passes = passes_of_others_.load(std::memory_order_relaxed);
        const bool is_alone = passes == seen_;
        seen_ = passes;
        const bool has_posts = engine.has_posts();
        const bool is_wanted =
            (has_posts && !has_seen_posts_) ||
            (is_wanted_.load(std::memory_order_relaxed) && is_wanted_.exchange(false));
        // Whoever has posted a call may wait for it at once, and is quicker with it. So a thread that moves nothing leaves
        // a post alone for a pass.
        const bool moves = is_alone && (engine.is_running() || (has_posts && has_seen_posts_));
        has_seen_posts_ = has_posts;
        show_pass(moves);
        const bool has_moved = moves && guarded(0, [&] { return engine.progress(); }) > 0;
        if (is_wanted || has_moved) end = Clock::now() + patience;
        if (!moves) pause_core(is_alone ? 8 : 32);
    } while (!is_stopping_ && Clock::now() < end);
}

// A thread that shares its core with the application does not keep calls.
void ProgressThread::show_pass(bool moves)
{
    const bool keeps = moves && !shares_core_.load(std::memory_order_relaxed);
    if (keeps && ++count_ == nobody) ++count_;
    pass_.store(keeps ? count_ : nobody, std::memory_order_relaxed);
}

}  // namespace hier
