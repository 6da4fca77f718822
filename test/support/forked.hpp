// SPDX-License-Identifier: BSD-3-Clause
// Ranks as forked processes. They can exchange bytes during set-up, and every wait has a bound.
//
// A rank's body returns its fault, or "". The rank ends by _exit, so nothing of the test program
// runs twice. A rank that is still there after the bound is killed and reported.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "team/group.hpp"

namespace hier::test {

// The bound of every wait. With TSan a test may take half a minute, and twice as long beside another one.
inline constexpr std::chrono::seconds patience{60};

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

    // Every wait of this process calls `step`; null: nothing.
    static void while_waiting(int (*step)());

private:
    static int exchange(void* context, const void* out, std::size_t out_bytes, int to, void* in,
                        std::size_t in_bytes, int from);

    Exchange& exchange_;
    hier_bootstrap bootstrap_{};
};

// How each rank ended: "" (well), the fault that its body returned, "killed by signal 9", or
// "hangs".
using Ends = std::vector<std::string>;

Ends run_ranks(int ranks, const std::function<std::string(ForkedRank&)>& body);

// The first end that is not "", with its rank; "" if all are well.
std::string first_fault(const Ends& ends);

// Repeats `step` until it returns true; false when patience ends first.
bool await(const std::function<bool()>& step);

}  // namespace hier::test
