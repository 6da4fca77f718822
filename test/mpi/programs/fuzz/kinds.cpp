// SPDX-License-Identifier: BSD-3-Clause
#include "kinds.hpp"

#include <algorithm>

namespace hier_test::fuzz {

namespace {

template <Counted which> bool has(const Wanted& wanted) { return wanted.has(which); }

bool has_requests(const Wanted& wanted)
{
    const std::vector<Counted> all = wanted.list();
    return std::any_of(all.begin(), all.end(),
                       [](Counted which) { return manner_of(which) != Manner::blocking; });
}

constexpr std::size_t communicators_of_batch = 3;

constexpr KindOfCase all_kinds[] = {
    {has<Counted::allgather>, 2, 1, run_allgather},
    {has<Counted::allgatherv>, 2, 1, run_allgatherv},
    {has_requests, 1, communicators_of_batch, run_batch},
};

}  // namespace

std::vector<Counted> Wanted::list() const
{
    std::vector<Counted> all;
    for (std::size_t i = 0; i < number_of_counted; ++i) {
        if (calls[i]) all.push_back(static_cast<Counted>(i));
    }
    return all;
}

const KindOfCase& draw_kind_of_case(Random& common, const Wanted& wanted)
{
    const auto weight_of = [&wanted](const KindOfCase& kind) {
        return kind.is_wanted(wanted) ? kind.weight : 0;
    };
    unsigned sum = 0;
    for (const KindOfCase& kind : all_kinds) {
        sum += weight_of(kind);
    }
    unsigned drawn = common.below(sum);
    for (const KindOfCase& kind : all_kinds) {
        if (drawn < weight_of(kind)) return kind;
        drawn -= weight_of(kind);
    }
    return all_kinds[0];
}

Outcome run_alone(Operation& operation, const Setting& setting)
{
    Outcome outcome;
    outcome.text = operation.text();
    operation.fill(setting.drawn.pattern());
    outcome.status = operation.call();
    outcome.count(operation, Manner::blocking);
    if (outcome.status != MPI_SUCCESS) {
        return outcome;
    }
    if (setting.is_corrupt) operation.corrupt();
    const std::string opinion = operation.opinion();
    outcome.difference = operation.difference();
    if (outcome.difference.empty()) outcome.difference = opinion;
    return outcome;
}

}  // namespace hier_test::fuzz
