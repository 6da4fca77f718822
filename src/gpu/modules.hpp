// SPDX-License-Identifier: BSD-3-Clause
// The modules for GPU runtimes: files beside the component, one for each runtime.
#pragma once

#include <span>
#include <string>

#include "hier/gpu.hpp"

namespace hier::gpu {

struct Module {
    int choice;  // a HIER_GPU_*
    const char* file;
    const char* library;  // the library that it is built for; empty: this module is not built
    const char* family;   // the beginning of the names of the runtime's libraries
};
std::span<const Module> modules();

// Has this process loaded a library whose name begins like this, in any version?
bool uses(const char* family);

// cuCtxGetCurrent, if CUDA's driver is the only runtime that the process has loaded. Otherwise
// null.
using AsksForContext = int (*)(void**);
AsksForContext find_loaded_cuda();

struct Attempt {
    Runtime* runtime = nullptr;
    bool has_module = false;
    bool is_broken = false;  // there may be device memory, but nobody can tell
    std::string reason;      // why there is no runtime
};
// `only_loaded`: opens the module only if the process has loaded the module's library.
Attempt open_module(const Module& module, bool only_loaded);

}  // namespace hier::gpu
