// SPDX-License-Identifier: BSD-3-Clause
#include "api/progress_thread.hpp"

#include <csignal>

#include <chrono>
#include <system_error>

#include "api/progress_engine.hpp"
#include "base/log.hpp"
#include "hier/hier.h"
#include "topology/discovery.hpp"

namespace hier {
namespace {

// While nothing moves, a pass costs less than a microsecond, and a sleep some 60 us of delay.
constexpr unsigned passes_before_sleep = 500;
constexpr std::chrono::microseconds nap{10};

// Signals are for the application's threads.
class NoSignals {
public:
    NoSignals()
    {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    NoSignals(const NoSignals&) = delete;
    NoSignals& operator=(const NoSignals&) = delete;

private:
    sigset_t before_{};
};

}  // namespace

ProgressThread& ProgressThread::instance()
{
    static ProgressThread thread;
    return thread;
}

void ProgressThread::start()
{
    if (thread_.joinable()) return;
    is_stopping_ = false;
    const NoSignals block;
    try {
        thread_ = std::thread([this] { run(); });
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

void ProgressThread::wake()
{
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        is_wanted_ = true;
    }
    changed_.notify_one();
}

void ProgressThread::run()
{
    // The rank may be bound to the one core that computes.
    leave_core();
    while (!is_stopping_) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return is_wanted_ || is_stopping_; });
            is_wanted_ = false;
        }
        move_calls();
    }
}

void ProgressThread::move_calls() const
{
    ProgressEngine& engine = ProgressEngine::instance();
    unsigned idle_passes = 0, seen = passes_of_others_.load(std::memory_order_relaxed);
    while (engine.is_busy() && !is_stopping_) {
        const unsigned passes = passes_of_others_.load(std::memory_order_relaxed);
        const bool is_alone = passes == seen;
        seen = passes;
        if (is_alone) idle_passes = engine.progress() > 0 ? 0 : idle_passes + 1;
        if (!is_alone || idle_passes > passes_before_sleep) std::this_thread::sleep_for(nap);
    }
}

}  // namespace hier
