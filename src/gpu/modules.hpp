// SPDX-License-Identifier: BSD-3-Clause
// The files that know a GPU runtime, one each, beside the component.
#pragma once

#include <span>
#include <string>

#include "hier/gpu.hpp"

namespace hier::gpu {

struct Module {
    int choice;  // a HIER_GPU_*
    const char* file;
    const char* library;  // that it is built for; empty: it is not built
    const char* family;   // how the names of the runtime's libraries begin
};
std::span<const Module> modules();

// Has this process loaded a library of such a name, of whatever version?
bool uses(const char* family);

// CUDA's driver, where it is the only runtime that the process has loaded: cuCtxGetCurrent.
using AsksForContext = int (*)(void**);
AsksForContext find_loaded_cuda();

struct Attempt {
    Runtime* runtime = nullptr;
    bool has_module = false;
    bool is_broken = false;  // there may be device memory all the same
    std::string reason;      // why there is no runtime
};
// `only_loaded`: unless the process has loaded the library, too.
Attempt open_module(const Module& module, bool only_loaded);

}  // namespace hier::gpu
