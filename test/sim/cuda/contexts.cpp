// SPDX-License-Identifier: BSD-3-Clause
#include "contexts.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "hip.hpp"

namespace cuda_sim {
namespace {

constexpr int max_devices = 64;
struct Context {
    std::atomic<bool> is_active = false;
    std::atomic<unsigned> flags = 0;
    std::atomic<unsigned> life = 0;  // how many contexts the device has had
};
std::array<Context, max_devices> contexts;
std::atomic<bool> is_used = false;
thread_local std::vector<int> stack;  // devices

CUcontext context_of(int device)
{
    return reinterpret_cast<CUcontext>(&contexts.at(static_cast<std::size_t>(device)));
}

int device_of(CUcontext context)
{
    return static_cast<int>(reinterpret_cast<Context*>(context) - contexts.data());
}

void activate(int device)
{
    contexts.at(static_cast<std::size_t>(device)).is_active = true;
    (void)hipSetDevice(device);
}

void replace_top(int device)
{
    if (stack.empty()) stack.push_back(device);
    stack.back() = device;
    activate(device);
}

Context* current_state()
{
    return stack.empty() ? nullptr : &contexts[static_cast<std::size_t>(stack.back())];
}

}  // namespace

void initialize() { is_used = true; }

void enter_runtime()
{
    initialize();
    if (!stack.empty()) return;
    int device = 0, count = 0;
    if (hipGetDeviceCount(&count) == 0 && hipGetDevice(&device) == 0) replace_top(device);
}

void set_device(int device)
{
    initialize();
    replace_top(device);
}

void end_context()
{
    if (stack.empty()) return;
    Context& state = contexts[static_cast<std::size_t>(stack.back())];
    state.is_active = false;
    state.life++;
    stack.pop_back();
}

bool is_initialized() { return is_used; }

CUcontext current() { return stack.empty() ? nullptr : context_of(stack.back()); }

bool is_active(int device) { return contexts.at(static_cast<std::size_t>(device)).is_active; }

bool completes_copies()
{
    constexpr unsigned sync_memops = 0x80;
    const Context* state = current_state();
    return state != nullptr && (state->flags & sync_memops) != 0;
}

bool refuses(const char* what)
{
    const char* words = std::getenv("CUDA_SIM_REFUSES");
    return words != nullptr && std::strstr(words, what) != nullptr;
}

void give_up(const char* what)
{
    std::fprintf(stderr, "simulated CUDA: %s is not simulated\n", what);
    std::abort();
}

}  // namespace cuda_sim

using namespace cuda_sim;

extern "C" {

CUresult cuCtxGetCurrent(CUcontext* context)
{
    if (!is_initialized()) return CUDA_ERROR_NOT_INITIALIZED;
    *context = current();
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    if (!is_initialized()) return CUDA_ERROR_NOT_INITIALIZED;
    if (context != nullptr) {
        replace_top(device_of(context));
    } else if (!stack.empty()) {
        stack.pop_back();
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context)
{
    if (!is_initialized()) return CUDA_ERROR_NOT_INITIALIZED;
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    *context = current();
    stack.pop_back();
    if (!stack.empty()) activate(stack.back());
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    if (!is_initialized()) return CUDA_ERROR_NOT_INITIALIZED;
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    stack.push_back(device_of(context));
    activate(stack.back());
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned* flags)
{
    const Context* state = current_state();
    if (state == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *flags = state->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags)
{
    Context* state = current_state();
    if (state == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    state->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id)
{
    const CUcontext asked = context != nullptr ? context : current();
    if (asked == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const auto device = static_cast<std::size_t>(device_of(asked));
    *id = contexts[device].life * contexts.size() + device + 1;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active)
{
    if (!is_initialized()) return CUDA_ERROR_NOT_INITIALIZED;
    *flags = 0;
    *active = is_active(device) ? 1 : 0;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device)
{
    if (!is_initialized()) return CUDA_ERROR_NOT_INITIALIZED;
    contexts.at(static_cast<std::size_t>(device)).is_active = true;
    *context = context_of(device);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }

}  // extern "C"
