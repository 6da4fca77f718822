// SPDX-License-Identifier: BSD-3-Clause
// Do kernels start at once on a device, or is the application computing there? A kernel waits until a compute unit is
// free, and the kernels of a call wait for each other. Beside GEMMs that took 0.2 to 0.9 ms on 2 H200. Copy engines wait
// for nobody (doc/performance.md, "Small calls under a GEMM").
//
// So a kernel that is late keeps the next calls or blocks from launching one: first 20 of them, after the next late one
// 40, and so on up to 640. A kernel that is in time ends that, and takes a 64th from the number for the next late one. So
// where the application computes most of the time, few calls find out. Where fewer than one of 44 kernels is late, the
// number falls to 20. When the application has stopped, up to 640 small calls take 2 to 12 us more.
//
// A rank cannot see why a kernel is late. It may wait for one of a peer, whose device is busy, or whose process
// launches it late. Then copy engines are right, too.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace hier {

// Of one device, for all of the process's teams. The two kinds of kernels are counted apart, because one of them waits for
// peers. But what a late kernel costs is one number for both.
class ComputeUnits {
public:
    using Clock = std::chrono::steady_clock;
    enum class User : std::uint8_t { exchange, fan_out };
    static constexpr std::uint32_t fewest = 20, most = 640;  // calls or blocks without kernels
    static constexpr std::uint32_t decay = 64;

    static ComputeUnits& of(int device);
    // False: no kernel counts as late from now on. The default.
    static void watch_kernels(bool watches);

    // May the next call, or the next block, go by a kernel? Counts those that may not.
    bool are_free(User user);

    // One kernel that has been launched.
    class Kernel {
    public:
        // It should end within this time.
        void begin(int device, User user, Clock::duration patience);
        // Nobody looks at the kernel. Until begin() nobody does.
        void ignore() { units_ = nullptr; }
        // Others before it have not ended yet, so it could not start.
        void begin_again()
        {
            if (units_ != nullptr) launched_ = Clock::now();
        }
        // It has not ended yet.
        void look();
        // It has ended well. If that is seen late, it may have ended in time or not.
        void end();

    private:
        bool is_over_time() const { return Clock::now() - launched_ >= patience_; }

        ComputeUnits* units_ = nullptr;
        User user_ = User::exchange;
        Clock::time_point launched_;
        Clock::duration patience_{};
        bool is_late_ = false;
    };

private:
    using Count = std::atomic<std::uint32_t>;

    Count& without(User user) { return without_[static_cast<std::size_t>(user)]; }
    void note_late(User user);
    void note_in_time(User user);

    std::array<Count, 2> without_{};  // by user: calls or blocks that still go without kernels
    Count next_{fewest};
    std::atomic<bool> is_told_{false};
};

}  // namespace hier
