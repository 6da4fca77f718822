// SPDX-License-Identifier: BSD-3-Clause
#include "forked.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <new>

#include "base/log.hpp"

namespace hier::test {

constexpr std::size_t max_ranks = 10;
constexpr std::size_t max_bytes = 64 << 10;  // of a message
constexpr int message_too_long = -99;

namespace {

// Not steady_clock, which a test may replace.
std::chrono::nanoseconds now()
{
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

// The way from one rank to another, for one message at a time.
struct Pair {
    std::atomic<unsigned> sent, taken;
    std::size_t bytes;
    std::byte data[max_bytes];
};

std::mutex log_mutex;  // of the text, while threads add lines

std::string& log_text()
{
    static std::string text;
    return text;
}

void keep_log(int, const char* line) { ForkedRank::add_log(line); }

std::atomic<int (*)()> waiting_step = nullptr;  // threads wait, too

}  // namespace

// With --coverage a process keeps its counts until it ends by exit. A rank ends by _exit.
extern "C" [[gnu::weak]] void __gcov_dump();

// Memory that all processes of one run share. It starts with zeros.
class Exchange {
public:
    static std::unique_ptr<Exchange, void (*)(Exchange*)> make()
    {
        void* at = mmap(nullptr, sizeof(Exchange), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) throw std::bad_alloc();
        return {static_cast<Exchange*>(at), [](Exchange* e) { munmap(e, sizeof(Exchange)); }};
    }
    Pair pairs[max_ranks][max_ranks];  // from, to
    char reasons[max_ranks][1024];
};

ForkedRank::ForkedRank(int rank, int size, Exchange& exchange)
    : exchange_(exchange), bootstrap_{this, rank, size, ForkedRank::exchange, nullptr, nullptr}
{
}

int ForkedRank::exchange(void* context, const void* out, std::size_t out_bytes, int to, void* in,
                         std::size_t in_bytes, int from)
{
    ForkedRank& self = *static_cast<ForkedRank*>(context);
    const auto wait_for = [&](int peer, const std::function<bool()>& is_there) {
        if (await(is_there)) return;
        // An error code could be taken for one that the test expects.
        std::snprintf(self.exchange_.reasons[self.rank()], sizeof Exchange::reasons[0],
                      "hangs in an exchange with rank %d", peer);
        _exit(1);
    };
    if (out_bytes > max_bytes) return message_too_long;
    if (to >= 0) {
        Pair& there = self.exchange_.pairs[self.rank()][to];
        wait_for(to, [&] { return there.taken.load(std::memory_order_acquire) == there.sent; });
        there.bytes = out_bytes;
        std::memcpy(there.data, out, out_bytes);
        there.sent.fetch_add(1, std::memory_order_release);
    }
    if (from < 0) return 0;
    Pair& here = self.exchange_.pairs[from][self.rank()];
    wait_for(from, [&] { return here.sent.load(std::memory_order_acquire) != here.taken; });
    const bool fits = here.bytes <= in_bytes;
    if (fits) std::memcpy(in, here.data, here.bytes);
    here.taken.fetch_add(1, std::memory_order_release);
    return fits ? 0 : message_too_long;
}

bool ForkedRank::is_logged(const std::string& words)
{
    return log_text().find(words) != std::string::npos;
}
std::string ForkedRank::log_lines() { return log_text(); }
void ForkedRank::add_log(const char* line)
{
    const std::lock_guard lock(log_mutex);
    log_text() += std::string(line) + '\n';
}
void ForkedRank::while_waiting(int (*step)()) { waiting_step = step; }

bool await(const std::function<bool()>& step)
{
    const auto end = now() + patience;
    for (unsigned pass = 0; !step(); pass++) {
        if (now() > end) return false;
        if (int (*const own_step)() = waiting_step; own_step != nullptr) (void)own_step();
        if (pass < 50) {
            sched_yield();
        } else {
            usleep(100);  // there are more ranks than cores
        }
    }
    return true;
}

namespace {

[[noreturn]] void be_rank(int rank, int ranks, Exchange& exchange,
                          const std::function<std::string(ForkedRank&)>& body)
{
    std::string reason;
    // CMocka's handlers would make this process go on with the next test.
    for (const int number : {SIGSEGV, SIGILL, SIGFPE, SIGBUS, SIGSYS, SIGABRT})
        signal(number, SIG_DFL);
    set_log(HIER_LOG_INFO, keep_log);
    try {
        ForkedRank self(rank, ranks, exchange);
        reason = body(self);
    } catch (const std::exception& e) {
        reason = std::string("exception: ") + e.what();
    }
    char* told = exchange.reasons[rank];
    std::snprintf(told, sizeof exchange.reasons[0], "%s", reason.c_str());
    if (__gcov_dump != nullptr) __gcov_dump();
    _exit(reason.empty() ? 0 : 1);
}

std::string end_of(int status, const char* reason)
{
    if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
    if (WEXITSTATUS(status) == 0) return "";
    return reason[0] != '\0' ? reason : "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Ends run_ranks(int ranks, const std::function<std::string(ForkedRank&)>& body)
{
    if (static_cast<std::size_t>(ranks) > max_ranks) std::abort();
    const auto exchange = Exchange::make();
    std::vector<pid_t> pids;
    std::fflush(nullptr);
    for (int r = 0; r < ranks; r++) {
        const pid_t pid = fork();
        if (pid == 0) be_rank(r, ranks, *exchange, body);
        pids.push_back(pid);
    }
    Ends ends(pids.size(), "hangs");
    std::size_t left = pids.size();
    const auto bound = now() + 2 * patience;
    while (left > 0) {
        for (std::size_t r = 0; r < pids.size(); r++) {
            int status = 0;
            if (pids[r] <= 0 || waitpid(pids[r], &status, WNOHANG) != pids[r]) continue;
            if (ends[r] == "hangs")
                ends[r] = now() > bound ? "hangs" : end_of(status, exchange->reasons[r]);
            pids[r] = 0;
            left--;
        }
        if (now() > bound) {
            for (const pid_t pid : pids) {
                if (pid > 0) kill(pid, SIGKILL);
            }
        }
        usleep(1000);
    }
    return ends;
}

std::string first_fault(const Ends& ends)
{
    for (std::size_t r = 0; r < ends.size(); r++) {
        if (!ends[r].empty()) return "rank " + std::to_string(r) + ": " + ends[r];
    }
    return "";
}

}  // namespace hier::test
