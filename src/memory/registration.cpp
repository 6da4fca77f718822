// SPDX-License-Identifier: BSD-3-Clause
#include "memory/registration.hpp"

#include "gpu/runtime.hpp"

namespace hier {

bool Registration::ensure(int device, void* memory, std::size_t bytes)
{
    if (memory_ != nullptr) return true;
    if (is_refused_) return false;
    is_refused_ = failed(gpu::runtime()->memory().register_host(device, memory, bytes));
    if (is_refused_) return false;
    memory_ = memory;
    device_ = device;
    return true;
}

bool Registration::release()
{
    const bool is_given_back =
        memory_ == nullptr || gpu::runtime()->memory().unregister_host(device_, memory_);
    memory_ = nullptr;
    return is_given_back;
}

}  // namespace hier
