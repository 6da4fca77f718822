// SPDX-License-Identifier: BSD-3-Clause
#include "kinds.hpp"

namespace hier_test::fuzz {

namespace {

constexpr KindOfCase all_kinds[] = {
    {"allgather", 1, run_allgather},
};

}  // namespace

const KindOfCase& draw_kind_of_case(Random& common)
{
    unsigned sum = 0;
    for (const KindOfCase& kind : all_kinds) {
        sum += kind.weight;
    }
    unsigned drawn = common.below(sum);
    for (const KindOfCase& kind : all_kinds) {
        if (drawn < kind.weight) return kind;
        drawn -= kind.weight;
    }
    return all_kinds[0];
}

}  // namespace hier_test::fuzz
