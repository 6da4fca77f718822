// SPDX-License-Identifier: BSD-3-Clause
#include "kinds.hpp"

namespace hier_test::fuzz {

namespace {

constexpr KindOfCase all_kinds[] = {
    {Counted::allgather, 1, run_allgather},
    {Counted::allgatherv, 1, run_allgatherv},
};

}  // namespace

const KindOfCase& draw_kind_of_case(Random& common, const Wanted& wanted)
{
    const auto weight_of = [&wanted](const KindOfCase& kind) {
        return wanted.has(kind.collective) ? kind.weight : 0;
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

}  // namespace hier_test::fuzz
