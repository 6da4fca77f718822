// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace hier_test::soak {

// What a process holds: memory by kind, mappings, descriptors, threads, and what the GPU runtime holds for it.
struct Figure {
    std::string name;
    double value;
    double slack;       // how much more it may be later without being a leak
    double known_loss;  // the part of the value that Open MPI is known to lose
};

// `communicators` is how many this process has made and freed.
// Call this only while nothing else goes on in the process. The figures and their order are the same each time.
std::vector<Figure> measure(unsigned long long communicators);

}  // namespace hier_test::soak
