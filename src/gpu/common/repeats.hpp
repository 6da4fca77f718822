// SPDX-License-Identifier: BSD-3-Clause
// Launches of one kernel. Those that repeat an earlier one start sooner.
//
// A program calls again and again with the same buffers. Then only the values change that tell of the
// call. The driver starts a kernel sooner if its arguments stay, and the kernel finds the values elsewhere
// (launch_values.hpp). (H100, from the launch until the host sees a word that the kernel stores: a launch 7.6 us,
// one of a graph of CUDA 5.0 us, one whose arguments are set anew 8.2 us.)
//
// A program may have many calls that it repeats, in any order. So the last ones are known, by their
// buffers. From its third launch on a call goes by a prepared kernel.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "gpu/common/launch_values.hpp"
#include "gpu/common/platform.hpp"

namespace hier::gpu {

// Do the arguments differ in nothing but their values?
bool is_same_call(const Exchange& a, const Exchange& b);
bool is_same_call(const FanOut& a, const FanOut& b);

template <class Arguments> class Repeats {
public:
    // All of these in the same stream. `kernel` has no arguments yet.
    hipError_t launch(KernelLaunch kernel, hipStream_t stream, Arguments& arguments);
    ValuesOf<Arguments>& values() { return values_; }
    // The prepared kernels: destroys them, or leaves them because their context is gone.
    void close();
    void abandon();

private:
    struct Call {
        std::uint64_t key = 0;        // of `first`, to find it quickly
        std::uint64_t launches = 0;   // 0: the call is not known
        std::uint64_t last_used = 0;  // by uses_
        std::unique_ptr<Arguments> first;
        std::unique_ptr<PreparedKernel> kernel;
        bool is_prepared = false;  // with `first`
    };

    Call& find(const Arguments& arguments);
    bool start_prepared(Call& call, KernelLaunch kernel, hipStream_t stream,
                        const Arguments& arguments);
    hipError_t prepare(Call& call, KernelLaunch kernel);
    unsigned slot_of(const Call& call) const
    {
        return static_cast<unsigned>(&call - calls_.data());
    }

    std::array<Call, known_calls> calls_;
    ValuesOf<Arguments> values_;
    std::uint64_t uses_ = 0;
    int refusals_ = 0;
};

extern template class Repeats<Exchange>;
extern template class Repeats<FanOut>;

}  // namespace hier::gpu
