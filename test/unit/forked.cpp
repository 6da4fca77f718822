#include "forked.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>

#include "log.hpp"

namespace hier::test {

constexpr std::size_t most_ranks = 6;
constexpr std::size_t most_bytes = 8192;  // of one rank in one exchange
constexpr int exchange_of_different_sizes = -99;

namespace {

// Of our own: a test may replace the one that the core uses.
std::chrono::nanoseconds now()
{
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

// One group. A rank writes into its slot of the round's parity, then says that it did; it is two
// rounds ahead of nobody.
struct Board {
    struct Slot {
        std::size_t bytes;
        std::byte data[most_bytes];
    };
    std::atomic<unsigned> round[most_ranks];
    Slot slots[2][most_ranks];
};

std::string& log_text()
{
    static std::string text;
    return text;
}

void keep_log(int, const char* line) { ForkedRank::add_log(line); }

int (*waiting_step)() = nullptr;

}  // namespace

// Shared by all processes of one run. Fresh memory is zero.
class Exchange {
public:
    static std::unique_ptr<Exchange, void (*)(Exchange*)> make()
    {
        void* at = mmap(nullptr, sizeof(Exchange), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) throw std::bad_alloc();
        return {static_cast<Exchange*>(at), [](Exchange* e) { munmap(e, sizeof(Exchange)); }};
    }
    // 0: the team; then node and rail groups by their lowest rank.
    Board boards[1 + 2 * most_ranks];
    char reasons[most_ranks][1024];
};

struct ForkedRank::Member {
    ForkedRank& owner;
    Board& board;
    std::size_t index;
    std::size_t size;
    unsigned round = 0;
};

ForkedRank::ForkedRank(int rank, int size, Exchange& exchange) : exchange_(exchange)
{
    members_.push_back(
        std::make_unique<Member>(Member{*this, exchange.boards[0], static_cast<std::size_t>(rank),
                                        static_cast<std::size_t>(size)}));
    bootstrap_.team = {members_[0].get(), rank, size, allgather};
    bootstrap_.split = split;
}

ForkedRank::~ForkedRank() = default;

int ForkedRank::allgather(void* context, const void* in, void* out, std::size_t bytes)
{
    Member& me = *static_cast<Member*>(context);
    auto& slots = me.board.slots[me.round % 2];
    me.round++;
    if (bytes > most_bytes) return exchange_of_different_sizes;
    slots[me.index].bytes = bytes;
    std::memcpy(slots[me.index].data, in, bytes);
    me.board.round[me.index].store(me.round, std::memory_order_release);
    for (std::size_t r = 0; r < me.size; r++) {
        const auto& round = me.board.round[r];
        if (!await([&] { return round.load(std::memory_order_acquire) >= me.round; })) {
            // As an error it could pass for one that was expected.
            std::snprintf(me.owner.exchange_.reasons[me.owner.rank()], sizeof Exchange::reasons[0],
                          "hangs in an exchange with rank %zu of its group", r);
            _exit(1);
        }
        if (slots[r].bytes != bytes) return exchange_of_different_sizes;
        std::memcpy(static_cast<std::byte*>(out) + r * bytes, slots[r].data, bytes);
    }
    return 0;
}

int ForkedRank::split(void* context, int which, int color, int key, hier_group* out)
{
    struct Wish {
        int color, key, rank;
    };
    ForkedRank& self = static_cast<Member*>(context)->owner;
    std::vector<Wish> all(static_cast<std::size_t>(self.size()));
    const Wish mine{color, key, self.rank()};
    if (const int code = allgather(context, &mine, all.data(), sizeof mine); code != 0) return code;
    if (which == self.failing_split_) return 5;
    std::erase_if(all, [&](const Wish& w) { return w.color != color; });
    const auto lowest = static_cast<std::size_t>(all[0].rank);
    std::stable_sort(all.begin(), all.end(),
                     [](const Wish& a, const Wish& b) { return a.key < b.key; });
    const auto me =
        std::find_if(all.begin(), all.end(), [&](const Wish& w) { return w.rank == mine.rank; });
    const auto index = static_cast<std::size_t>(me - all.begin());
    Board& board = self.exchange_.boards[1 + static_cast<std::size_t>(which) * most_ranks + lowest];
    self.members_.push_back(std::make_unique<Member>(Member{self, board, index, all.size()}));
    // A later split of the same process goes on with the board's rounds.
    self.members_.back()->round = board.round[index].load();
    *out = {self.members_.back().get(), static_cast<int>(index), static_cast<int>(all.size()),
            allgather};
    return 0;
}

bool ForkedRank::is_logged(const std::string& words)
{
    return log_text().find(words) != std::string::npos;
}
std::string ForkedRank::log_lines() { return log_text(); }
void ForkedRank::add_log(const char* line) { log_text() += std::string(line) + '\n'; }
void ForkedRank::while_waiting(int (*step)()) { waiting_step = step; }

bool await(const std::function<bool()>& step)
{
    const auto end = now() + patience;
    for (unsigned turn = 0; !step(); turn++) {
        if (now() > end) return false;
        if (waiting_step != nullptr) (void)waiting_step();
        if (turn < 50) {
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
    // CMocka's handlers would go on with the next test, in this process, too.
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
