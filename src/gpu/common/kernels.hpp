// SPDX-License-Identifier: BSD-3-Clause
// The compiled kernels: a file beside the module. Without the file there are no kernels.
#pragma once

#include <atomic>

#include "gpu/common/platform.hpp"
#include "gpu/common/repeats.hpp"

namespace hier::gpu {

// Is the file there?
bool are_kernels_installed();

// The kernels of one device. Its context is current in every call.
class Kernels {
public:
    // Loads them at the first call, and remembers the outcome. False: the runtime refuses them.
    bool load(int device);
    // All kernels of one kind in the same stream.
    hipError_t launch(hipStream_t stream, Exchange& arguments);
    hipError_t launch(hipStream_t stream, FanOut& arguments);
    // Any thread may call this at any time.
    void stop();
    void unload();
    // The context is gone, or a kernel still runs. The page of the stop word stays.
    void abandon();

private:
    hipError_t make_stop_word();

    hipModule_t module_ = nullptr;
    hipFunction_t exchange_ = nullptr, fan_out_ = nullptr;
    Repeats<Exchange> exchanges_{0};
    Repeats<FanOut> fan_outs_{Repeats<Exchange>::calls};
    // A registered page of the process, because a reset of the device ends the runtime's pinned memory.
    std::atomic<std::atomic<std::uint32_t>*> stop_ = nullptr;
    unsigned compute_units_ = 1;
    bool is_tried_ = false, is_loaded_ = false;
};

}  // namespace hier::gpu
