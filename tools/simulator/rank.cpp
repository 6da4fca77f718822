// SPDX-License-Identifier: BSD-3-Clause
#include "rank.hpp"

#include <algorithm>

namespace bench::simulator {

using hier::Level;
using hier::Op;

std::uint32_t Pair::complete() const
{
    const auto stripes = static_cast<std::uint32_t>(arrived.size());
    std::uint32_t least = ~0u;  // the highest count before a gap
    for (std::uint32_t stripe = 0; stripe < stripes; stripe++)
        least = std::min(least, arrived[stripe] * stripes + stripe);
    return least;
}

Rank::Rank(hier::Plan plan, int number, int stripes)
    : remaining(static_cast<OpIndex>(plan.ops.size())), plan_(std::move(plan))
{
    link_successors();
    build_pairs(number, stripes);
    // Successors hold the same, and many ranks run at once: give the memory back.
    std::vector<OpIndex>().swap(plan_.dependencies);
}

void Rank::link_successors()
{
    const OpIndex n = size();
    pending.resize(n);
    first_successor_.assign(n + 1, 0);
    for (OpIndex i = 0; i < n; i++) {
        pending[i] = op(i).dependencies;
        for (const OpIndex d : plan_.dependencies_of(op(i))) {
            first_successor_[d + 1]++;
        }
    }
    for (OpIndex i = 0; i < n; i++) {
        first_successor_[i + 1] += first_successor_[i];
    }
    successors_.resize(first_successor_[n]);
    std::vector<OpIndex> next(first_successor_.begin(), first_successor_.end() - 1);
    for (OpIndex i = 0; i < n; i++) {
        for (const OpIndex d : plan_.dependencies_of(op(i))) {
            successors_[next[d]++] = i;
        }
    }
}

void Rank::build_pairs(int number, int stripes)
{
    pair_.assign(size(), 0);
    for (OpIndex i = 0; i < size(); i++) {
        const Op& o = op(i);
        if (o.peer == Op::every_peer || o.peer == number) {
            continue;
        }
        const auto next = static_cast<std::uint32_t>(pairs_.size());
        const auto [it, is_new] = known_.try_emplace(key(o.level, o.peer), next);
        if (is_new) {
            pairs_.emplace_back().arrived.resize(
                o.level == Level::rail ? static_cast<std::size_t>(stripes) : 1);
        }
        pair_[i] = it->second;
        Pair& pair = pairs_[it->second];
        if (o.kind == Op::Kind::put) {
            pair.puts.push_back(i);
        } else if (o.kind == Op::Kind::await_data) {
            pair.awaits.push_back(i);
        } else if (hier::awaits_peer(o.kind)) {
            pair.readies.push_back(i);
        }
    }
    const auto by_count = [&](OpIndex a, OpIndex b) { return op(a).count < op(b).count; };
    for (Pair& c : pairs_) {
        std::stable_sort(c.puts.begin(), c.puts.end(), by_count);
        std::stable_sort(c.awaits.begin(), c.awaits.end(), by_count);
    }
}

std::uint32_t Rank::find(Level level, int peer) const
{
    const auto it = known_.find(key(level, peer));
    return it == known_.end() ? no_pair : it->second;
}

void Rank::refresh(std::uint32_t number)
{
    const Pair& pair = pairs_[number];
    if (pair.next_put < pair.puts.size() && pending[pair.puts[pair.next_put]] == 0) {
        can_put_.insert(number);
    } else {
        can_put_.erase(number);
    }
}

void Rank::mark_runnable(OpIndex i) { refresh(pair_[i]); }

bool Rank::next_on_rail(OpIndex& i) const
{
    if (can_put_.empty()) {
        return false;
    }
    const Pair& pair = pairs_[*can_put_.begin()];
    i = pair.puts[pair.next_put];
    return true;
}

void Rank::put_on_rail(OpIndex i)
{
    pairs_[pair_[i]].next_put++;
    in_flight++;
    refresh(pair_[i]);
}

}  // namespace bench::simulator
