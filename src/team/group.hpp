// SPDX-License-Identifier: BSD-3-Clause
// Ranks of a team that set something up together: exchanges throw, and a failure on one rank becomes
// a failure on all. Nobody but the group's own ranks takes part, and no communicator is made.
//
// Every message carries a vote: does a rank that it comes from give up a step, and of which agree()?
//
//   rank 0   agree { gather  x           }          x: throws, and takes part once more, in whatever
//   rank 1   agree { gather    gather -> }             the others do next: there they hear of it
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "hier/hier.h"

namespace hier {

class Group {
public:
    // All ranks of the team. Allocates nothing.
    explicit Group(const hier_bootstrap& bootstrap);
    // These of the team's, in this order; the caller is one of them.
    Group(const hier_bootstrap& bootstrap, std::span<const int> ranks);

    int rank() const { return rank_; }  // in the group
    int size() const { return size_; }

    // `in` of every rank, in rank order. T is sent as bytes.
    template <class T> std::vector<T> collect(const T& in) const
    {
        std::vector<T> out(static_cast<std::size_t>(size()));
        gather(&in, reinterpret_cast<std::byte*>(out.data()), sizeof(T));
        return out;
    }
    // As above for byte strings of any length.
    std::vector<std::vector<std::byte>> collect_bytes(const std::vector<std::byte>& in) const;

    // Runs `step`, and throws SetupError on every rank when it threw anything on any, with the rank's
    // own cause or the number of a rank that failed; ExchangeFailure where an exchange itself has failed,
    // which ends the whole set-up. Exchanges of this group inside `step` may be left
    // out by ranks that throw, and steps may have steps.
    template <class Step> void agree(const char* what, Step&& step) const
    {
        using Type = std::remove_reference_t<Step>;
        agree(
            what, [](void* each) { (*static_cast<Type*>(each))(); }, &step);
    }

private:
    struct Vote {
        static constexpr std::uint32_t of_ours = 0x48494552;
        static constexpr std::int32_t none = 0x7fffffff;
        std::uint32_t mark = of_ours;
        std::int32_t level = none;  // of the outermost agree() that fails
        std::int32_t rank = 0;      // on which
        std::int32_t reserved = 0;
    };
    struct Departure;

    void agree(const char* what, void (*step)(void*), void* argument) const;
    // `bytes` of every rank, > 0.
    void gather(const void* in, std::byte* out, std::size_t bytes) const;
    // The vote of all. `frame`: room for a vote, then the blocks of `bytes` of all ranks, by their
    // distance, of which the own one is there. Messages are received at `room`.
    Vote spread(Vote vote, std::byte* frame, std::size_t bytes, std::span<std::byte> room) const;
    Vote spread(Vote vote) const;
    int team_rank(std::size_t i) const;

    hier_bootstrap bootstrap_;
    std::vector<int> ranks_;  // the team's numbers; none: all of the team
    int size_;
    int rank_;
    mutable std::int32_t level_ = 0;  // of agree() that run
};

}  // namespace hier
