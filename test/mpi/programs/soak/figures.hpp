// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace hier_test::soak {

// What a process holds: memory by kind, mappings, descriptors, threads, and what the GPU runtime holds for it.
struct Figure {
    std::string name;
    double value;
    double slack;  // how much more it may be later without being a leak
};

// Call this only while nothing else goes on in the process. The figures and their order are the same each time.
std::vector<Figure> measure();

}  // namespace hier_test::soak
