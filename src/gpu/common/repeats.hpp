// SPDX-License-Identifier: BSD-3-Clause
// Launches of one kernel. Those that repeat an earlier one start sooner (hier/gpu_repeat.hpp).
//
// A program may have several calls that it repeats in turns. So the last few calls are known, by their
// buffers. The first two launches of a call tell the step; the third one has it again, and from then on
// the call goes by a prepared kernel, as long as the step stays.
#pragma once

#include <array>
#include <memory>

#include "gpu/common/platform.hpp"
#include "hier/gpu_exchange.hpp"
#include "hier/gpu_fan_out.hpp"

namespace hier::gpu {

// What changes from launch to launch.
struct LaunchValues {
    std::uint64_t call = 0, done = 0;
    LaunchValues operator-(const LaunchValues& other) const
    {
        return {call - other.call, done - other.done};
    }
    bool operator==(const LaunchValues&) const = default;
};
LaunchValues values_of(const Exchange& arguments);
LaunchValues values_of(const FanOut& arguments);
// Do the arguments differ in nothing but their values?
bool is_same_call(const Exchange& a, const Exchange& b);
bool is_same_call(const FanOut& a, const FanOut& b);

template <class Arguments> class Repeats {
public:
    static constexpr unsigned calls = 8;

    // `first_slot`: the first one of so many as `calls`, which no other kernel uses.
    explicit Repeats(unsigned first_slot) : first_slot_(first_slot) {}
    // All of these in the same stream. Fills in `arguments.repeat`. `kernel` has no arguments yet.
    hipError_t launch(KernelLaunch kernel, hipStream_t stream, Arguments& arguments);
    // The prepared kernels: destroys them, or leaves them because their context is gone.
    void close();
    void abandon();

private:
    struct Call {
        Arguments first{};            // of the last launch that was none by a prepared kernel
        LaunchValues last{}, step{};  // of the last launch, and from the one before it
        std::uint64_t launches = 0;   // 0: the call is not known
        std::uint64_t last_used = 0;  // by uses_
        bool is_prepared = false;     // with `first` and `step`
        std::unique_ptr<PreparedKernel> kernel;
    };

    Call& find(const Arguments& arguments);
    bool start_prepared(Call& call, KernelLaunch kernel, hipStream_t stream);

    std::array<Call, calls> calls_;
    unsigned first_slot_;
    std::uint64_t uses_ = 0;
    int refusals_ = 0;
};

extern template class Repeats<Exchange>;
extern template class Repeats<FanOut>;

}  // namespace hier::gpu
