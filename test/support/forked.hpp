// SPDX-License-Identifier: BSD-3-Clause
// Ranks as processes of their own: forked, bounded, and able to exchange bytes while they set up.
//
// A rank's body returns what went wrong, or "". It ends by _exit: nothing of the test program runs
// twice. Every wait has a bound; a rank that outlives its own is killed and reported.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "team/group.hpp"

namespace hier::test {

inline constexpr std::chrono::seconds patience{30};  // of whoever waits for others

class Exchange;

class ForkedRank {
public:
    ForkedRank(int rank, int size, Exchange& exchange);
    ForkedRank(const ForkedRank&) = delete;
    ForkedRank& operator=(const ForkedRank&) = delete;

    int rank() const { return bootstrap_.rank; }
    int size() const { return bootstrap_.size; }
    const hier_bootstrap& bootstrap() const { return bootstrap_; }
    Group group() const { return Group(bootstrap_); }

    // The lines that were logged on this rank since the start.
    static bool is_logged(const std::string& words);
    static std::string log_lines();
    static void add_log(const char* line);

    // What every wait of this process calls; null for nothing.
    static void while_waiting(int (*step)());

private:
    static int exchange(void* context, const void* out, std::size_t out_bytes, int to, void* in,
                        std::size_t in_bytes, int from);

    Exchange& exchange_;
    hier_bootstrap bootstrap_{};
};

// What ended a rank: "" is well; its body's reason; "killed by signal 9"; "hangs".
using Ends = std::vector<std::string>;

Ends run_ranks(int ranks, const std::function<std::string(ForkedRank&)>& body);

// The first end that is not well, with its rank; "" when there is none.
std::string first_fault(const Ends& ends);

// Repeats `step` until it returns true; false when patience ends first.
bool await(const std::function<bool()>& step);

}  // namespace hier::test
