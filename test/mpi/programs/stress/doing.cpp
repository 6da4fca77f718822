// SPDX-License-Identifier: BSD-3-Clause
#include "doing.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <thread>
#include <unistd.h>

namespace hier_test::stress {

namespace {

// They are static, because a signal handler may use nothing else.
char lines[max_threads][240];
char title[120];
int rank = 0;
std::atomic<unsigned long long> moves{0};

void put(const char* text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) {
        _exit(4);
    }
}

}  // namespace

// The other ranks need some time to print their lines before the launcher ends them.
extern "C" {
static void tell_and_end(int)
{
    put(title);
    for (const char* line : lines) {
        put(line);
    }
    sleep(3);
    _exit(3);
}
}

Doing::Doing(int thread) : line_(lines[thread]), thread_(thread) {}

void Doing::now(const char* format, ...)
{
    char what[160];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    std::snprintf(line_, sizeof lines[0], "stress: rank %d, thread %d: %s\n", rank, thread_, what);
}

void Doing::moved() { moves.fetch_add(1, std::memory_order_relaxed); }

HangWatch::HangWatch(int own_rank, long seconds) : seconds_(seconds)
{
    rank = own_rank;
    std::snprintf(title, sizeof title,
                  "stress: rank %d: no call has ended for %ld s, or the time is over\n", rank,
                  seconds);
    std::signal(SIGALRM, tell_and_end);
}

void HangWatch::watch(const std::atomic<int>& running) const
{
    using namespace std::chrono;
    unsigned long long seen = moves;
    auto last = steady_clock::now();
    while (running != 0) {
        std::this_thread::sleep_for(milliseconds(20));
        if (seen != moves) {
            seen = moves;
            last = steady_clock::now();
        }
        if (steady_clock::now() - last > seconds(seconds_)) {
            raise(SIGALRM);
        }
    }
}

}  // namespace hier_test::stress
