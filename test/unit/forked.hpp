// Ranks as processes of their own: forked, bounded, and able to exchange bytes while they set up.
//
// A rank's body returns what went wrong, or "". It ends by _exit: nothing of the test program runs
// twice. Every wait has a bound; a rank that outlives its own is killed and reported.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hier/hier.h"

namespace hier::test {

inline constexpr std::chrono::seconds patience{30};  // of whoever waits for others

class Exchange;

class ForkedRank {
public:
    ForkedRank(int rank, int size, Exchange& exchange);
    ~ForkedRank();

    int rank() const { return bootstrap_.team.rank; }
    int size() const { return bootstrap_.team.size; }
    const hier_group& group() const { return bootstrap_.team; }
    const hier_bootstrap& bootstrap() const { return bootstrap_; }
    // The split of this number does its part, then fails on this rank.
    void fail_split(int which) { failing_split_ = which; }

    // The lines that were logged on this rank since the start.
    static bool is_logged(const std::string& words);
    static std::string log_lines();
    static void add_log(const char* line);

    // What every wait of this process calls; null for nothing.
    static void while_waiting(int (*step)());

private:
    struct Member;  // a rank's place in one group
    static int allgather(void* context, const void* in, void* out, std::size_t bytes);
    static int split(void* context, int which, int color, int key, hier_group* out);

    Exchange& exchange_;
    std::vector<std::unique_ptr<Member>> members_;
    hier_bootstrap bootstrap_{};
    int failing_split_ = -1;
};

// What ended a rank: "" is well; its body's reason; "killed by signal 9"; "hangs".
using Ends = std::vector<std::string>;

Ends run_ranks(int ranks, const std::function<std::string(ForkedRank&)>& body);

// The first end that is not well, with its rank; "" when there is none.
std::string first_fault(const Ends& ends);

// Repeats `step` until it returns true; false when patience ends first.
bool await(const std::function<bool()>& step);

}  // namespace hier::test
