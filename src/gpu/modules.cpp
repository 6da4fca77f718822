// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/modules.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
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
    for (std::string path : directories) {
        path += '/' + name;
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

// The name by which a library calls itself (DT_SONAME), or "".
std::string_view soname_of(const dl_phdr_info& library)
{
    const auto* const end = library.dlpi_phdr + library.dlpi_phnum;
    const auto* const segment = std::find_if(
        library.dlpi_phdr, end, [](const ElfW(Phdr) & p) { return p.p_type == PT_DYNAMIC; });
    if (segment == end) return {};
    const char* strings = nullptr;
    const ElfW(Dyn)* name = nullptr;
    for (const auto* entry =
             reinterpret_cast<const ElfW(Dyn)*>(library.dlpi_addr + segment->p_vaddr);
         entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB)  // glibc has made it an address, but for the vDSO
            strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
        if (entry->d_tag == DT_SONAME) name = entry;
    }
    const bool is_address = reinterpret_cast<ElfW(Addr)>(strings) > library.dlpi_addr;
    return name != nullptr && is_address ? strings + name->d_un.d_val : std::string_view();
}

// Where the process has loaded this library from, or "". dlopen(RTLD_NOLOAD) would look for a library
// that is not there in every directory of the search path.
std::string path_of_loaded(std::string_view library)
{
    struct Search {
        std::string_view library;
        std::string path;
    } search{library, ""};
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* argument) {
            auto& wanted = *static_cast<Search*>(argument);
            if (soname_of(*info) != wanted.library) return 0;
            wanted.path = info->dlpi_name;
            return 1;
        },
        &search);
    return search.path;
}

bool is_loaded(const char* library) { return !path_of_loaded(library).empty(); }

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
    const std::string path = path_of_loaded("libcuda.so.1");
    if (path.empty() || uses("libamdhip64.so")) return nullptr;
    void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);  // keeps it loaded
    if (library == nullptr) return nullptr;
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
        log(HIER_LOG_DEBUG, "GPU memory by %s, %s kernels", a.runtime->name(),
            a.runtime->has_kernels(0) ? "with" : "without");
    }
    return a;
}

}  // namespace hier::gpu
