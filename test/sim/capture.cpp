// SPDX-License-Identifier: BSD-3-Clause
#include "capture.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "calls.hpp"
#include "stream.hpp"

namespace hip_sim {
namespace {

struct Capture {
    std::thread::id thread;
    bool is_invalid;
};

struct Captures {
    std::mutex mutex;
    std::map<hipStream_t, Capture> all;
    std::atomic<std::size_t> count{0};
};

Captures& captures()
{
    static Captures& made = *new Captures;
    return made;
}

thread_local hipStreamCaptureMode mode_of_thread = hipStreamCaptureModeGlobal;

hipError_t begin(hipStream_t stream, hipStreamCaptureMode mode)
{
    if (mode != hipStreamCaptureModeGlobal) give_up("captures of mode %d are not simulated", mode);
    if (!is_stream(stream) || stream == nullptr) return hipErrorInvalidHandle;
    Captures& c = captures();
    const std::lock_guard lock(c.mutex);
    const Capture fresh{std::this_thread::get_id(), false};
    if (!c.all.emplace(stream, fresh).second) return hipErrorStreamCaptureUnsupported;
    c.count = c.all.size();
    return hipSuccess;
}

hipError_t end(hipStream_t stream, hipGraph_t* graph)
{
    Captures& c = captures();
    const std::lock_guard lock(c.mutex);
    const auto found = c.all.find(stream);
    if (found == c.all.end()) return hipErrorStreamCaptureUnmatched;
    const Capture ended = found->second;
    if (ended.thread != std::this_thread::get_id()) return hipErrorStreamCaptureWrongThread;
    c.all.erase(found);
    c.count = c.all.size();
    *graph = nullptr;
    return ended.is_invalid ? hipErrorStreamCaptureInvalidated : hipSuccess;
}

}  // namespace

bool is_forbidden_by_capture()
{
    Captures& c = captures();
    if (c.count == 0 || mode_of_thread == hipStreamCaptureModeRelaxed) return false;
    const std::lock_guard lock(c.mutex);
    for (auto& [stream, capture] : c.all) capture.is_invalid = true;
    return !c.all.empty();
}

bool is_captured(hipStream_t stream)
{
    Captures& c = captures();
    if (c.count == 0) return false;
    const std::lock_guard lock(c.mutex);
    return c.all.contains(stream);
}

}  // namespace hip_sim

using namespace hip_sim;

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode)
{
    return counted(broken, [&] { return begin(stream, mode); });
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph)
{
    return counted(broken, [&] { return end(stream, graph); });
}

// Not counted, because every query of the product calls this too.
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode)
{
    return uncounted([&] {
        std::swap(*mode, mode_of_thread);
        return hipSuccess;
    });
}
