// SPDX-License-Identifier: BSD-3-Clause
// Graphs that the application captures while we work.
#pragma once

#ifdef HIER_CUDA
#include "gpu/cuda/driver.hpp"
#endif
#include "gpu/common/names.hpp"

namespace hier::gpu {

// While one thread captures a graph in the strictest mode (the default one), whatever another thread
// calls that waits, asks whether something is done or makes memory fails and ends the capture, but
// for threads that have said that they may. The calling one has, for the life of this.
class CapturePass {
public:
    CapturePass() { is_given_ = hipThreadExchangeStreamCaptureMode(&mode_) == hipSuccess; }
    ~CapturePass()
    {
        if (is_given_) (void)hipThreadExchangeStreamCaptureMode(&mode_);
    }
    CapturePass(const CapturePass&) = delete;
    CapturePass& operator=(const CapturePass&) = delete;

private:
    hipStreamCaptureMode mode_ = hipStreamCaptureModeRelaxed;
    bool is_given_ = false;
};

}  // namespace hier::gpu
