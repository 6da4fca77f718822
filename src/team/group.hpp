// SPDX-License-Identifier: BSD-3-Clause
// Ranks of a team that set something up together. Exchanges throw, and a failure on one rank
// becomes a failure on all. Only the group's own ranks take part, and no communicator is made.
//
// Every message carries a vote: has a rank given up a step, and the step of which agree()?
//
//     rank 0   agree { gather  x           }
//     rank 1   agree { gather    gather -> }
//
// At x rank 0 throws. It takes part once more, in the next exchange of the others, whatever that
// is. There the others hear of the failure.
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
    // These ranks of the team, in this order. The caller is one of them.
    Group(const hier_bootstrap& bootstrap, std::span<const int> ranks);

    int rank() const { return rank_; }  // in the group
    int size() const { return size_; }

    // The `in` of every rank, in rank order. T is sent as bytes.
    template <class T> std::vector<T> collect(const T& in) const
    {
        std::vector<T> out(static_cast<std::size_t>(size()));
        gather(&in, reinterpret_cast<std::byte*>(out.data()), sizeof(T));
        return out;
    }
    // The same for byte strings of any length.
    std::vector<std::vector<std::byte>> collect_bytes(const std::vector<std::byte>& in) const;

    // For the first step of a team. Throws KnownFailure if a rank with which this one exchanges
    // messages is not there (hier_bootstrap::is_present). Nothing is sent to that rank. By the vote
    // all ranks that are there hear of it, because each rank is somebody's partner:
    //
    //     rank 0 ----- rank 1     rank 1 is absent. Ranks 0 and 2 know that. Rank 3 hears of it from
    //       |            x        rank 0 or 2. The messages to and from rank 1 are left out.
    //     rank 3 ----- rank 2
    void require_presence() const;

    // Runs `step` on all ranks. If the step throws on any rank, agree() throws SetupError on every
    // rank, with the rank's own cause or with the number of a rank that failed. If an exchange
    // itself has failed, agree() throws ExchangeFailure, which ends the whole set-up. Ranks that
    // throw may leave out exchanges of this group inside `step`. A step may have steps of its own.
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
        std::int32_t level = none;  // the outermost agree() that fails
        std::int32_t rank = 0;      // a rank on which it fails
        std::int32_t reserved = 0;
    };
    struct Departure;

    void agree(const char* what, void (*step)(void*), void* argument) const;
    // Collects `bytes` from every rank, > 0.
    void gather(const void* in, std::byte* out, std::size_t bytes) const;
    // Returns the vote of all. `frame` has room for a vote, and then for the blocks of all ranks,
    // `bytes` each, by distance. The own block is there already. Messages are received in `room`.
    Vote spread(Vote vote, std::byte* frame, std::size_t bytes, std::span<std::byte> room) const;
    Vote spread(Vote vote) const;
    int team_rank(std::size_t i) const;

    hier_bootstrap bootstrap_;
    std::vector<int> ranks_;  // by their numbers in the team; empty: all of the team
    int size_;
    int rank_;
    mutable std::int32_t level_ = 0;  // how many agree() are running
    // Ranks that are absent, a bit for each step of spread(): to send to, and to receive from.
    mutable std::uint32_t absent_to_ = 0, absent_from_ = 0;
};

}  // namespace hier
