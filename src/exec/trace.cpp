// SPDX-License-Identifier: BSD-3-Clause
#include "exec/trace.hpp"

namespace hier {

void Trace::end(const Program& program)
{
    end_ = now();
    for (const Level level : {Level::node, Level::rail}) {
        for (const Program::Pair& pair : program.pairs(level)) {
            date_waits(pair.readies);
            date_waits(pair.awaits);
        }
    }
}

// A wait is dated from the end of the wait that was due before it.
void Trace::date_waits(const std::vector<std::uint32_t>& waits)
{
    std::int64_t since = begin_;
    for (const std::uint32_t op : waits) {
        times_[op].runnable = times_[op].started = since;
        since = times_[op].ended;
        if (since == 0) since = end_;
    }
}

}  // namespace hier
