// SPDX-License-Identifier: BSD-3-Clause
#include "coll/allgather/carriers.hpp"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

namespace hier {
namespace {

std::size_t quotient(std::size_t bytes, std::size_t by) { return (bytes + by - 1) / by; }

// What all bytes of a result take of the node's memory at all ranks.
std::size_t time_in_memory(std::size_t bytes, std::size_t ranks)
{
    constexpr std::size_t busy_cores = 8;
    return bytes * ranks / busy_cores;
}

class CarriagePlanner {
public:
    CarriagePlanner(std::span<const int> ranks, std::vector<Extent>& kept, const SpreadCosts& costs)
        : ranks_(ranks), kept_(kept), costs_(costs), peers_(ranks.size() - 1), loads_(peers_ + 1),
          carried_(ranks.size()), puts_(ranks.size())
    {
        for (const int rank : ranks) {
            const std::size_t bytes = shard(rank).length;
            all_ += bytes;
            largest_ = std::max(largest_, bytes);
            least_ = std::min(least_, bytes);
        }
    }

    Carriage plan()
    {
        // What a rank has to receive, and what cores have to do.
        level_ = std::max(all_, 2 * largest_);
        const std::size_t handed = largest_ - kept_of(largest_);
        if (handed < costs_.grain) return {};
        choose_part(handed);
        // The owner has time until the last carrier ends.
        level_ = std::max(level_, handed + spreading(part_));
        deal();
        for (std::size_t i = 0; i < ranks_.size(); i++) note(time_of(i));
        note(all_ - least_);
        note(time_in_memory(all_, ranks_.size()));
        return std::move(out_);
    }

private:
    Extent& shard(int rank) { return kept_[static_cast<std::size_t>(rank)]; }
    void note(std::size_t time) { out_.time = std::max(out_.time, time); }
    // A carrier's pushes of so many bytes.
    std::size_t spreading(std::size_t bytes) const { return (peers_ - 1) * (bytes + costs_.put); }

    // What an owner keeps. It sends and copies no more than the level allows.
    std::size_t kept_of(std::size_t bytes) const
    {
        if (bytes * loads_ <= level_) return bytes;
        const std::size_t once = bytes * (loads_ - peers_ + 1);
        const std::size_t kept = once < level_ ? (level_ - once) / (peers_ - 1) : 0;
        return std::min(bytes, kept / costs_.grain * costs_.grain);
    }

    // One for each carrier, unless that takes more for the starts of puts than for the bytes. The
    // owner copies its own shard in the time of one more.
    void choose_part(std::size_t handed)
    {
        const double root =
            std::sqrt(static_cast<double>(handed) * static_cast<double>(costs_.put) /
                      static_cast<double>(peers_ - 1));
        const std::size_t part = std::max(static_cast<std::size_t>(root), quotient(handed, peers_));
        part_ = quotient(part, costs_.grain) * costs_.grain;
    }

    // Each part goes to the rank with the most room for it.
    void deal()
    {
        std::priority_queue<std::pair<std::ptrdiff_t, std::size_t>> rooms;  // with the rank's index
        for (std::size_t i = 0; i < ranks_.size(); i++) {
            const std::size_t bytes = shard(ranks_[i]).length;
            if (kept_of(bytes) == bytes)
                rooms.emplace(static_cast<std::ptrdiff_t>(level_) -
                                  static_cast<std::ptrdiff_t>(bytes * loads_),
                              i);
        }
        for (std::size_t owner = 0; owner < ranks_.size() && !rooms.empty(); owner++) {
            const std::size_t bytes = shard(ranks_[owner]).length;
            const std::size_t parts = quotient(bytes - kept_of(bytes), part_);
            std::vector<std::size_t> carriers;  // those of equal room in descending order
            for (std::size_t p = 0; p < parts; p++) {
                const auto [room, carrier] = rooms.top();
                rooms.pop();
                rooms.emplace(room - static_cast<std::ptrdiff_t>(spreading(part_)), carrier);
                carriers.push_back(carrier);
            }
            if (parts > 0) hand_over(owner, carriers);
        }
    }

    // `carriers`: of each part. Parts of one carrier become one, and the last one may be short.
    void hand_over(std::size_t owner, const std::vector<std::size_t>& carriers)
    {
        Extent& kept = shard(ranks_[owner]);
        const Extent whole = std::exchange(kept, {kept.offset, kept_of(kept.length)});
        std::vector<std::size_t> counts(ranks_.size());
        for (const std::size_t carrier : carriers) counts[carrier]++;
        std::size_t done = kept.length, puts = 0, largest = 0;
        for (const std::size_t carrier : carriers) {
            if (counts[carrier] == 0) continue;
            const std::size_t bytes =
                std::min(std::exchange(counts[carrier], 0) * part_, whole.length - done);
            out_.handovers.push_back(
                {ranks_[owner], ranks_[carrier], {whole.offset + done, bytes}});
            done += bytes;
            puts++;
            largest = std::max(largest, bytes);
            carried_[carrier] += bytes;
            puts_[carrier] += peers_ - 1;
        }
        // Then the last carrier passes on its part, and the owner pushes what it has kept.
        const std::size_t scatter = done - kept.length + puts * costs_.put + costs_.start;
        note(scatter + spreading(largest));
        note(scatter + peers_ * (kept.length + (kept.length > 0 ? costs_.put : 0)) + whole.length);
    }

    // Of a rank that hands over nothing.
    std::size_t time_of(std::size_t i)
    {
        const std::size_t own = shard(ranks_[i]).length;
        const std::size_t puts = puts_[i] + (own > 0 ? peers_ : 0);
        return own * loads_ + carried_[i] * (peers_ - 1) + puts * costs_.put +
               (carried_[i] > 0 ? costs_.start : 0);
    }

    std::span<const int> ranks_;
    std::vector<Extent>& kept_;
    const SpreadCosts& costs_;
    std::size_t peers_;
    std::size_t loads_;  // how often a rank sends or copies a byte that it keeps
    std::size_t all_ = 0, largest_ = 0, least_ = SIZE_MAX;
    std::size_t level_ = 0;  // of bytes that a rank sends and copies
    std::size_t part_ = 0;
    std::vector<std::size_t> carried_;  // bytes, by index
    std::vector<std::size_t> puts_;     // of carried parts, by index
    Carriage out_;
};

}  // namespace

Carriage carry_on_node(std::span<const int> ranks, std::vector<Extent>& kept,
                       const SpreadCosts& costs)
{
    if (ranks.size() < 3) return {};
    return CarriagePlanner(ranks, kept, costs).plan();
}

}  // namespace hier
