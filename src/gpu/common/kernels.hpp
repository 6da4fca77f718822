// SPDX-License-Identifier: BSD-3-Clause
// The compiled kernels: a file beside the module. Without the file there are no kernels.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

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
    // The context is gone, or a kernel still runs. The page of the words stays.
    void abandon();

private:
    // In a page of the process that the runtime has registered, because a reset of the device ends the runtime's
    // own pinned memory.
    struct HostWords {
        std::atomic<std::uint32_t> stop = 0;
        FanOutValues::Places added{};
    };

    static std::size_t bytes_of_words();
    hipError_t make_words();

    hipModule_t module_ = nullptr;
    hipFunction_t exchange_ = nullptr, fan_out_ = nullptr;
    Repeats<Exchange> exchanges_;
    Repeats<FanOut> fan_outs_;
    std::atomic<HostWords*> words_ = nullptr;
    unsigned compute_units_ = 1;
    bool is_tried_ = false, is_loaded_ = false;
};

}  // namespace hier::gpu
