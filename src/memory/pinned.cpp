#include "memory/pinned.hpp"

#include "gpu/runtime.hpp"

namespace hier {

PinnedMemory::~PinnedMemory() { release(); }

void PinnedMemory::release()
{
    if (data_ != nullptr) gpu::runtime()->free_pinned(device_, data_);
    data_ = nullptr;
    bytes_ = 0;
}

bool PinnedMemory::reserve(int device, std::size_t bytes)
{
    if (bytes <= bytes_) return true;
    release();
    data_ = gpu::runtime()->allocate_pinned(device, bytes);
    if (data_ == nullptr) return false;
    bytes_ = bytes;
    device_ = device;
    return true;
}

}  // namespace hier
