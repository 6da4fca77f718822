// SPDX-License-Identifier: BSD-3-Clause
// CUDA: how GPUs are linked. NVML's library comes with the driver. NVML's header may be missing
// where this is built, so the few names in use are declared here.
#include <dlfcn.h>

#include "gpu/common/platform.hpp"
#include "gpu/common/report.hpp"
#include "gpu/cuda/links.hpp"
#include "hier/hier.h"

namespace hier::gpu {
namespace {

// As in nvml.h.
using NvmlDevice = void*;
constexpr int nvml_success = 0;
constexpr unsigned nvml_links = 18;    // NVML_NVLINK_MAX_LINKS
constexpr int nvml_remote_is_gpu = 0;  // NVML_NVLINK_DEVICE_TYPE_GPU

struct Nvml {
    int (*init)();
    int (*shutdown)();
    int (*device_by_pci)(const char*, NvmlDevice*);
    int (*link_state)(NvmlDevice, unsigned link, unsigned* is_active);
    int (*remote_type)(NvmlDevice, unsigned link, int* type);

    bool open()
    {
        void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        return library != nullptr && find(library, "nvmlInit_v2", init) &&
               find(library, "nvmlShutdown", shutdown) &&
               find(library, "nvmlDeviceGetHandleByPciBusId_v2", device_by_pci) &&
               find(library, "nvmlDeviceGetNvLinkState", link_state) &&
               find(library, "nvmlDeviceGetNvLinkRemoteDeviceType", remote_type) &&
               init() == nvml_success;
    }

private:
    template <class F> static bool find(void* library, const char* name, F& function)
    {
        function = reinterpret_cast<F>(dlsym(library, name));
        return function != nullptr;
    }
};

bool has_link_to_gpu(const Nvml& nvml, int device)
{
    char address[32] = "";
    NvmlDevice handle = nullptr;
    if (hipDeviceGetPCIBusId(address, sizeof address, device) != hipSuccess ||
        nvml.device_by_pci(address, &handle) != nvml_success)
        return false;
    for (unsigned link = 0; link < nvml_links; link++) {
        unsigned is_active = 0;
        int type = -1;
        if (nvml.link_state(handle, link, &is_active) == nvml_success && is_active != 0 &&
            nvml.remote_type(handle, link, &type) == nvml_success && type == nvml_remote_is_gpu)
            return true;
    }
    return false;
}

bool look_for_direct_links()
{
    Nvml nvml{};
    int devices = 0;
    if (hipGetDeviceCount(&devices) != hipSuccess || !nvml.open()) return false;
    bool found = false;
    for (int device = 0; device < devices && !found; device++)
        found = has_link_to_gpu(nvml, device);
    (void)nvml.shutdown();
    if (found) report(HIER_LOG_INFO, "GPUs are linked one by one: copies to all peers at once");
    return found;
}

}  // namespace

bool has_direct_links()
{
    static const bool found = look_for_direct_links();
    return found;
}

}  // namespace hier::gpu
