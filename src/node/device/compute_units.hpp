// SPDX-License-Identifier: BSD-3-Clause
// Do kernels start at once on a device, or is the application computing there? A kernel waits until a compute unit is
// free, and the kernels of a call wait for each other. Copy engines wait for nobody, but a copy inside a device takes
// compute units, too. MPI_Allgather on 2 H200, us: medians alone / means while bf16 GEMMs of 8192 x 8192 run
// (bench/gpu_overlap, the better of two runs):
//
//                                64 KiB in all    256 KiB       1 MiB       4 MiB       16 MiB
//   in place, kernels                10 / 925    10 / 668    12 / 307    16 / 749    33 /  733
//   in place, copy engines           11 /  17    12 /  17    12 /  24    16 /  21    33 /  37
//   out of place, kernels            10 / 602    10 / 553    11 / 254    15 / 763    34 /  647
//   out of place, copy engines       13 / 753    11 / 510    13 / 347    16 / 755    34 / 1438
//   out of place, through the host   19 /  33
//
// So a kernel that is late keeps the next calls from launching one: first 20 of them, after the next late one 40, and
// so on up to 640. Where the application always computes, some calls in a thousand find that out. Where it has stopped,
// the first kernel that is not late lets all others run. Small blocks then go through memory of the host
// (device_publish.hpp). Larger ones out of place have kernels all the same.
//
// A rank cannot see why a kernel is late. It may wait for one of a peer, whose device is busy, or whose process
// launches it late. Then copy engines are right, too.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hier {

// Of one device, for all of the process's teams.
class ComputeUnits {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::uint32_t fewest = 20, most = 640;  // calls without kernels

    static ComputeUnits& of(int device);
    // False: no kernel counts as late from now on. The default.
    static void watch_kernels(bool watches);

    // May the next call, or the next block, go by a kernel? Counts those that may not.
    bool are_free();

    // One kernel that has been launched.
    class Kernel {
    public:
        // It should end within this time.
        void begin(int device, Clock::duration patience);
        // Those before it have ended, so it may start only now.
        void begin_again()
        {
            if (units_ != nullptr) launched_ = Clock::now();
        }
        // It has not ended yet.
        void look();
        void end();

    private:
        ComputeUnits* units_ = nullptr;
        Clock::time_point launched_;
        Clock::duration patience_{};
        bool is_late_ = false;
    };

private:
    void note_late();
    void note_in_time();

    std::atomic<std::uint32_t> without_{0};  // calls that still go without kernels
    std::atomic<std::uint32_t> next_{fewest};
    std::atomic<bool> is_told_{false};
};

}  // namespace hier
