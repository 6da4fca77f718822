// SPDX-License-Identifier: BSD-3-Clause
#include "base/statistics.hpp"

namespace hier {

Tally::Tally() { Statistics::instance().take_in(*this); }

Tally::~Tally() { Statistics::instance().let_go(*this); }

Statistics& Statistics::instance()
{
    // Never destroyed: a tool may read it until the process ends.
    static auto* const statistics = new Statistics;
    return *statistics;
}

unsigned long long Statistics::sum(int statistic)
{
    const std::lock_guard lock(mutex_);
    unsigned long long sum =
        values_[static_cast<std::size_t>(statistic)].load(std::memory_order_relaxed);
    for (const Tally* tally : tallies_) sum += tally->get(statistic);
    return sum;
}

void Statistics::take_in(Tally& tally)
{
    const std::lock_guard lock(mutex_);
    tallies_.push_back(&tally);
}

// Under the mutex: no reader finds a value twice, or not at all.
void Statistics::let_go(Tally& tally)
{
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < HIER_STATISTICS; i++) add(i, tally.get(i));
    std::erase(tallies_, &tally);
}

}  // namespace hier
