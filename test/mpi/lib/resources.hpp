// SPDX-License-Identifier: BSD-3-Clause
// The resources of a process: resident memory, descriptors, shared-memory mappings.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/prctl.h>
#include <unistd.h>

namespace hier_test {

// Call this before MPI_Init in a program that measures resident memory. With transparent huge pages the kernel may turn
// 512 small pages into a huge one at any time. That adds 2 MiB of memory that nobody has touched.
inline void keep_pages_small() { prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

struct Resources {
    long long resident_bytes = 0;
    long descriptors = 0;
    long shared_mappings = 0;  // of memory that has a name or a descriptor
    long shm_entries = 0;      // in /dev/shm; 0 if other jobs use it, too

    static Resources now()
    {
        Resources held;
        long long pages = 0;
        std::ifstream("/proc/self/statm") >> held.resident_bytes >> pages;
        held.resident_bytes = pages * sysconf(_SC_PAGESIZE);
        held.descriptors = entries("/proc/self/fd") - 1;  // one of them reads the directory
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);) {
            if (line.find("/dev/shm/") != std::string::npos ||
                line.find("/memfd:") != std::string::npos ||
                line.find("/SYSV") != std::string::npos) {
                ++held.shared_mappings;
            }
        }
        // test/mpi/scripts/private-shm sets this variable.
        if (std::getenv("HIER_TEST_PRIVATE_SHM") != nullptr) {
            held.shm_entries = entries("/dev/shm");
        }
        return held;
    }

private:
    static long entries(const char* directory)
    {
        long count = 0;
        std::error_code error;
        for (auto i = std::filesystem::directory_iterator(directory, error);
             !error && i != std::filesystem::directory_iterator(); i.increment(error)) {
            ++count;
        }
        return count;
    }
};

}  // namespace hier_test
