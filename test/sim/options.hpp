// SPDX-License-Identifier: BSD-3-Clause
// Options of the simulated runtime. It reads them from the environment once, at the first use.
//
//   HIP_SIM_DEVICES=n        devices (8); 0: hipGetDeviceCount gives hipErrorNoDevice
//   HIP_SIM_DELAY_US=n       a stream waits up to so many microseconds (50) before an operation, and
//                            between the parts of a copy
//   HIP_SIM_LEAST_DELAY_US=n it always waits so many microseconds (0) before an operation, in addition
//   HIP_SIM_SEED=n           the seed of these delays (1), together with OMPI_COMM_WORLD_RANK
//   HIP_SIM_HIDDEN=0         the CPU can reach device memory
//   HIP_SIM_LARGE_BAR=1      the CPU reads and writes device memory; copy engines see its stores after a
//                            flush (bar.hpp). 2: at once, and there is no register; 3: there is none all the same
//   HIP_SIM_NOCU=1           hipMemcpyAsync takes hipMemcpyDeviceToDeviceNoCU, as from ROCm 6.1 on; from
//                            HIP_SIM_VERSION 7.15 on such a copy to a peer does nothing
//   HIP_SIM_XNACK=1          unknown memory passes for device memory, as up to ROCm 5.6 where devices
//                            reach all memory (HSA_XNACK=1)
//   HIP_SIM_VERSION=n        the answer of hipRuntimeGetVersion (the version of the headers)
//   HIP_SIM_FAIL=n           the n-th counted call fails and does nothing
//   HIP_SIM_FAIL_ASYNC=n     the n-th hipMemcpyAsync fails when it is done
//   HIP_SIM_HANG_ASYNC=n     the n-th hipMemcpyAsync stops half-way, until the program lets it go on
//   HIP_SIM_FAIL_RANK=r      the three above hold only in the process of this OMPI_COMM_WORLD_RANK
//   HIP_SIM_REPORT=DIR       a process that has used the runtime writes DIR/PID.* when it exits
#pragma once

#include <cstdint>
#include <string>

namespace hip_sim {

struct Options {
    int devices = 8;
    unsigned delay_us = 50;
    unsigned least_delay_us = 0;
    unsigned seed = 1;
    bool hidden = true;
    bool has_large_bar = false;
    bool needs_flush = false;
    bool has_flush_register = false;
    bool has_no_cu_kind = false;
    bool reaches_all = false;
    int version = 0;
    std::uint64_t failing_call = 0;
    std::uint64_t failing_copy = 0;
    std::uint64_t hanging_copy = 0;
    std::string report;
};

const Options& options();

// Prints one line and aborts. For calls that this runtime does not simulate, and for states that it
// cannot leave.
[[noreturn]] __attribute__((format(printf, 1, 2))) void give_up(const char* format, ...);

}  // namespace hip_sim
