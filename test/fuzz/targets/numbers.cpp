// SPDX-License-Identifier: BSD-3-Clause
// Numbers and rates that a user writes into MCA variables.
#include <cmath>

#include "test/fuzz/target.hpp"

extern "C" {
#include "ompi_coll_hier/coll_hier_numbers.h"
}

namespace hier::fuzz {
namespace {

void run(Bytes bytes)
{
    const std::string text = Input(bytes).word();
    long long number = 0, again = 0;
    if (mca_coll_hier_parse_number(text.c_str(), true, &number)) {
        const std::string plain = std::to_string(number);
        require(mca_coll_hier_parse_number(plain.c_str(), false, &again) && again == number,
                "a number in plain digits is the same");
    }
    double rate = 0;
    if (mca_coll_hier_parse_rate(text.c_str(), &rate)) (void)std::isfinite(rate);
}

std::vector<std::string> seeds()
{
    return {"64k", "0x10", "-5", "9223372036854775807", "8G", " 1", "1e9", "nan", "0x1p-3", "12.5"};
}

}  // namespace

const Target numbers{"numbers", run, seeds};

}  // namespace hier::fuzz
