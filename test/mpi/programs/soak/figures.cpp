// SPDX-License-Identifier: BSD-3-Clause
#include "figures.hpp"

#include "test/mpi/lib/resources.hpp"
#include "test/mpi/programs/fuzz/memory.hpp"

#include <malloc.h>

namespace hier_test::soak {

namespace {

// A number of /proc/self/status, in the unit that stands there.
double status(const std::string& wanted)
{
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
        if (line.compare(0, wanted.size() + 1, wanted + ":") == 0) {
            return std::strtod(line.c_str() + wanted.size() + 1, nullptr);
        }
    }
    return 0;
}

// Without those that hold addresses and no memory. The simulated runtime keeps the addresses of freed memory, one more
// mapping for each size that it has not met before.
double mappings()
{
    std::ifstream file("/proc/self/maps");
    double count = 0;
    for (std::string line; std::getline(file, line);) {
        count += line.find(" ---p ") == std::string::npos ? 1 : 0;
    }
    return count;
}

double peers()
{
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks - 1;
}

}  // namespace

std::vector<Figure> measure(unsigned long long communicators)
{
    // Open MPI 4.1 loses about 9 KiB with each communicator, with and without hier.
    constexpr double kib_of_communicator = 12;
    malloc_trim(0);
    const Resources held = Resources::now();
    const auto devices = fuzz::device_figures();
    // The pools of device memory grow when more is wanted at once than ever before (memory_gpu.cpp). In the simulated
    // runtime they are shared memory.
    const bool has_pools = !devices.empty();
    std::vector<Figure> figures{
        // The allocator keeps some pages between blocks that are in use.
        {"private KiB", status("RssAnon"), 1024 + fuzz::kib_of_runtime(),
         kib_of_communicator * static_cast<double>(communicators)},
        // Open MPI touches its own shared memory bit by bit.
        {"shared KiB", status("RssShmem"), has_pools ? 16384.0 : 1024.0, 0},
        {"locked KiB", status("VmLck") + status("VmPin"), 0, 0},
        // The allocator makes and returns some, and the kernel joins neighbours.
        {"mappings", mappings(), has_pools ? 128.0 : 12.0, 0},
        {"shared mappings", static_cast<double>(held.shared_mappings), has_pools ? 32.0 : 0.0, 0},
        // Two ranks keep the connection that they make when they first need one; on a slow machine this is late. And an
        // exported segment of device memory has a descriptor until all peers have it.
        {"descriptors", static_cast<double>(held.descriptors), peers() + (has_pools ? 4.0 : 0.0),
         0},
        {"threads", status("Threads"), 0, 0},
    };
    for (const fuzz::DeviceFigure& device : devices) {
        figures.push_back({device.name, static_cast<double>(device.value), device.slack, 0});
    }
    return figures;
}

}  // namespace hier_test::soak
