// SPDX-License-Identifier: BSD-3-Clause
// Random datatypes with a given signature.
#pragma once

#include "random.hpp"
#include "test/mpi/lib/layout.hpp"

namespace hier_test::fuzz {

// A signature is a series of equal units. A unit is a short series of basic types.
struct Signature {
    std::vector<Layout> unit;
    std::size_t unit_bytes;
};

template <class T> void shuffle(Random& random, std::vector<T>& values)
{
    for (std::size_t i = values.size(); i > 1; --i) {
        std::swap(values[i - 1], values[random.between(0, i - 1)]);
    }
}

// All ranks of a case draw the same one.
Signature draw_signature(Random& random);

// A datatype and the number of its items that make up the signature.
struct Form {
    Layout layout;
    int items;
};

// A form of so many units. Nested types of up to three levels, in random order in memory, with gaps, shifted and negative
// bounds. The bytes of `blocks` blocks, one behind the other, never overlap. Ranks that draw different forms have equal
// signatures.
Form draw_form(Random& random, const Signature& signature, std::size_t units, int blocks);

// A form without bytes. Open MPI 4.1 returns from a call of 0 items before it asks any module, so either all ranks of a
// case have items, or none has.
Form draw_empty_form(Random& random, const Signature& signature, bool has_items);

}  // namespace hier_test::fuzz
