// SPDX-License-Identifier: BSD-3-Clause
// One rank's plan and how far it has come.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "hier/plan.hpp"

namespace bench::simulator {

using Time = std::int64_t;  // picoseconds: equal times stay equal
using OpIndex = std::uint32_t;

struct Pair {
    std::vector<OpIndex> puts;    // by count
    std::vector<OpIndex> awaits;  // by count
    std::vector<OpIndex> readies;
    std::size_t next_put = 0, next_await = 0;
    std::vector<std::uint32_t> arrived;  // by stripe
    bool is_ready = false;

    // The highest count up to which all puts have come.
    [[nodiscard]] std::uint32_t complete() const;
};

class Rank {
public:
    Rank(hier::Plan plan, int number, int stripes);

    [[nodiscard]] OpIndex size() const { return static_cast<OpIndex>(plan_.ops.size()); }
    [[nodiscard]] int depth() const { return plan_.depth; }
    [[nodiscard]] const hier::Op& op(OpIndex i) const { return plan_.ops[i]; }
    [[nodiscard]] std::span<const OpIndex> successors(OpIndex i) const
    {
        return std::span(successors_)
            .subspan(first_successor_[i], first_successor_[i + 1] - first_successor_[i]);
    }
    static constexpr std::uint32_t no_pair = ~0u;  // the plan does nothing with that peer
    [[nodiscard]] std::uint32_t find(hier::Level level, int peer) const;
    [[nodiscard]] Pair& pair(std::uint32_t number) { return pairs_[number]; }
    // The next put on the rail. False: there is none.
    [[nodiscard]] bool next_on_rail(OpIndex& i) const;
    void put_on_rail(OpIndex i);
    // The dependencies of this op are done. A rail put may now be the next of its pair.
    void mark_runnable(OpIndex i);

    std::vector<std::uint32_t> pending;  // dependencies left, by op
    OpIndex remaining;
    int in_flight = 0;  // rail puts
    bool has_entered = false;
    std::set<std::uint32_t> early;  // pairs that announced before this rank entered
    std::vector<std::pair<int, OpIndex>>
        early_messages;  // the puts that came before, with their ranks

    static constexpr int nobody = -1;
    struct Copying {
        OpIndex op;
        Time begin;          // at the earliest
        int reads = nobody;  // the rank whose put to all of the node `op` is
    };
    // Copies out of the bounce buffer and into it have streams of their own.
    enum Class : std::uint8_t { inward, outward, others, classes };
    struct CopyQueue {
        std::vector<Copying> copies;  // and node puts, and publishes to be read
        std::size_t head = 0;
        int free_streams = 0;
        bool is_woken = false;  // an event that looks at the queue is under way
    };
    CopyQueue queues[classes];
    // A block for a kernel. Its puts became runnable at the same time.
    struct Block {
        Time runnable;
        std::vector<OpIndex> puts;
    };
    struct Kernel {
        Time begin;  // at the earliest
        std::vector<OpIndex> puts;
    };
    struct KernelQueue {
        std::deque<Block> waiting;
        std::deque<Kernel> on_their_way;  // the first one runs, or is about to
        Time free = 0;                    // the next one may begin from then on
        bool is_woken = false;
    };
    KernelQueue kernels;
    Time last_issue = 0;
    Time core = 0;                             // each of these is free from then on
    Time egress = 0, ingress = 0;              // the GPU's port, free from then on
    Time stage_egress = 0, stage_ingress = 0;  // to and from the bounce buffer
    Time ended = 0;

private:
    static std::uint64_t key(hier::Level level, int peer)
    {
        return static_cast<std::uint64_t>(peer) << 1 | static_cast<std::uint64_t>(level);
    }
    void link_successors();
    void build_pairs(int number, int stripes);
    void refresh(std::uint32_t pair);

    hier::Plan plan_;
    std::vector<OpIndex> first_successor_, successors_;
    std::vector<std::uint32_t> pair_;  // by op
    std::vector<Pair> pairs_;          // in order of appearance
    std::unordered_map<std::uint64_t, std::uint32_t> known_;
    std::set<std::uint32_t> can_put_;  // rail pairs
};

}  // namespace bench::simulator
