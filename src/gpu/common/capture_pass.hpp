// SPDX-License-Identifier: BSD-3-Clause
// Permission to work while the application captures a graph.
#pragma once

#ifdef HIER_CUDA
#include "gpu/cuda/driver.hpp"
#endif
#include "gpu/common/names.hpp"

namespace hier::gpu {

// A thread may capture a graph in the strictest mode, which is the default. Then calls of other
// threads that wait, query or allocate fail, and they end the capture. A thread can declare that
// its calls have nothing to do with the capture. The calling thread does so for the life of this
// object.
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
