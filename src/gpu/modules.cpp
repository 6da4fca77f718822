// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/modules.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "hier/hier.h"

namespace hier::gpu {
namespace {

constexpr Module all[] = {
    {HIER_GPU_CUDA, "hier_gpu_cuda.so", "libcuda.so.1", "libcuda.so"},
    {HIER_GPU_ROCM, "hier_gpu_rocm.so", HIER_ROCM_LIBRARY, "libamdhip64.so"},
};

void log_line(int level, const char* line) { log(level, "%s", line); }

std::string directory_of_this()
{
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&log_line), &info) == 0 || info.dli_fname == nullptr)
        return ".";
    const std::string name = info.dli_fname;
    const std::size_t slash = name.rfind('/');
    return slash == std::string::npos ? "." : name.substr(0, slash);
}

// Looks beside the component. Programs of the build tree find the component's directory from their
// own. Tests and benches name the only directory by the variable.
void* find(const std::string& name, std::string& reason)
{
    const std::string here = directory_of_this();
    const char* elsewhere = std::getenv("HIER_GPU_MODULES");
    const std::vector<std::string> directories =
        elsewhere != nullptr ? std::vector<std::string>{elsewhere}
                             : std::vector<std::string>{here, here + "/../component"};
    for (const std::string& directory : directories) {
        const std::string path = directory + '/' + name;
        void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        const char* cause = dlerror();
        if (module != nullptr && dlsym(module, entry_point) != nullptr) return module;
        // The module stays open. If it were closed, every search would load it again, and runtime()
        // would take that for a reason to search again.
        if (module != nullptr) cause = "it has another version";
        if (!reason.empty() || cause == nullptr) continue;
        const bool is_named = std::string_view(cause).starts_with(path);
        reason = is_named ? cause : path + ": " + cause;
    }
    return nullptr;
}

bool is_loaded(const char* library)
{
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) dlclose(handle);
    return handle != nullptr;
}

}  // namespace

std::span<const Module> modules() { return all; }

bool uses(const char* family)
{
    return dl_iterate_phdr(
               [](dl_phdr_info* info, std::size_t, void* wanted) {
                   const std::string_view path = info->dlpi_name;
                   const std::size_t slash = path.rfind('/');
                   const auto name = slash == path.npos ? path : path.substr(slash + 1);
                   return static_cast<int>(name.starts_with(static_cast<const char*>(wanted)));
               },
               const_cast<char*>(family)) != 0;
}

AsksForContext find_loaded_cuda()
{
    void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);  // keeps it loaded
    if (library == nullptr || uses("libamdhip64.so")) return nullptr;
    return reinterpret_cast<AsksForContext>(dlsym(library, "cuCtxGetCurrent"));
}

Attempt open_module(const Module& module, bool only_loaded)
{
    Attempt a;
    if (*module.library == '\0') {
        a.reason = "it is not part of this build";
    } else if (only_loaded && !is_loaded(module.library)) {
        a.reason = std::string("it is built for ") + module.library;
    } else if (void* library = find(module.file, a.reason)) {
        char text[256] = "";
        a.has_module = true;
        const auto entry = reinterpret_cast<Open>(dlsym(library, entry_point));
        a.runtime = entry(log_line, text, sizeof text, a.is_broken);
        a.reason = text;
    }
    a.is_broken = a.is_broken || !a.has_module;
    if (a.runtime == nullptr) {
        log(HIER_LOG_DEBUG, "%s is not used: %s", module.file, a.reason.c_str());
    } else {
        log(HIER_LOG_DEBUG, "GPU memory by %s", a.runtime->name());
    }
    return a;
}

}  // namespace hier::gpu
