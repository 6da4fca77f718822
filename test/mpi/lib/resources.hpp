// SPDX-License-Identifier: BSD-3-Clause
// What a process holds: resident memory, descriptors, shared-memory mappings.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/prctl.h>
#include <unistd.h>

namespace hier_test {

// To be called before MPI_Init by who weighs resident memory. Where transparent huge pages are on for all, the kernel
// (khugepaged) makes one of 512 small pages, most of them never touched, whenever it comes by: 2 MiB more out of nothing.
inline void keep_pages_small() { prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); }

struct Resources {
    long long resident_bytes = 0;
    long descriptors = 0;
    long shared_mappings = 0;  // of memory under a name or a descriptor
    long shm_entries = 0;      // in /dev/shm; 0 where other jobs use it too

    static Resources now()
    {
        Resources held;
        long long pages = 0;
        std::ifstream("/proc/self/statm") >> held.resident_bytes >> pages;
        held.resident_bytes = pages * sysconf(_SC_PAGESIZE);
        held.descriptors = entries("/proc/self/fd") - 1;  // less the one that reads it
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);) {
            if (line.find("/dev/shm/") != std::string::npos ||
                line.find("/memfd:") != std::string::npos ||
                line.find("/SYSV") != std::string::npos) {
                ++held.shared_mappings;
            }
        }
        // Set by private-shm.
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
