// SPDX-License-Identifier: BSD-3-Clause
// Device memory that the application maps itself: it reserves addresses, then maps VMM segments there. On CUDA the
// driver has these functions, under names of its own.
#pragma once

#include "gpu_names.hpp"

#include <cstddef>
#include <stdexcept>
#include <string>

#ifdef HIER_CUDA
#include <cuda.h>
#include <dlfcn.h>
#endif

namespace hier_test {

#ifdef HIER_CUDA
template <class F> F* driver(const char* name)
{
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    return reinterpret_cast<F*>(dlsym(library, name));
}
#define HIER_VIRTUAL(HIP, CUDA) driver<decltype(CUDA)>(#CUDA)
using VirtualHandle = CUmemGenericAllocationHandle;
using VirtualAddress = CUdeviceptr;
#else
#define HIER_VIRTUAL(HIP, CUDA) HIP
using VirtualHandle = hipMemGenericAllocationHandle_t;
using VirtualAddress = void*;
#endif

class Mapped {
    static auto properties(int device)
    {
#ifdef HIER_CUDA
        CUmemAllocationProp wanted{};
        wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
#else
        hipMemAllocationProp wanted{};
        wanted.type = hipMemAllocationTypePinned;
        wanted.location.type = hipMemLocationTypeDevice;
        wanted.requestedHandleType = hipMemHandleTypePosixFileDescriptor;
#endif
        wanted.location.id = device;
        return wanted;
    }

public:
    // `bytes` from data() on, on the current device. They lie on both sides of a bound between two segments.
    Mapped(std::size_t bytes, int device) : device_(device)
    {
        const auto wanted = properties(device_);
        expect(HIER_VIRTUAL(hipMemGetAllocationGranularity,
                            cuMemGetAllocationGranularity)(&piece_, &wanted, {}),
               "granularity");
        const std::size_t ahead = piece_ - bytes / 2 % piece_ / guard * guard;
        bytes_ = (ahead + bytes + piece_ - 1) / piece_ * piece_;
        expect(HIER_VIRTUAL(hipMemAddressReserve, cuMemAddressReserve)(&base_, bytes_, 0, {}, 0),
               "reserving addresses");
        data_ = at(ahead);
        map();
    }
    ~Mapped()
    {
        unmap();
        (void)HIER_VIRTUAL(hipMemAddressFree, cuMemAddressFree)(base_, bytes_);
    }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;

    void* data() const { return data_; }
    // Puts other memory at the same addresses. The old memory must not be in use.
    void renew()
    {
        unmap();
        map();
    }

private:
    static constexpr std::size_t guard = 256;

    template <class Error> static void expect(Error error, const char* what)
    {
        if (static_cast<int>(error) != 0)
            throw std::runtime_error(std::string(what) + ": error " +
                                     std::to_string(static_cast<int>(error)));
    }

    void* at(std::size_t offset) const { return reinterpret_cast<std::byte*>(base_) + offset; }
    VirtualAddress address(std::size_t offset) const
    {
        return reinterpret_cast<VirtualAddress>(at(offset));
    }

    void map()
    {
        auto wanted = properties(device_);
        for (std::size_t done = 0; done < bytes_; done += piece_) {
            VirtualHandle handle{};
            auto error = HIER_VIRTUAL(hipMemCreate, cuMemCreate)(&handle, piece_, &wanted, 0);
#ifndef HIER_CUDA
            if (error == hipErrorNotSupported) {  // ROCm before 6.2 exports no such memory
                wanted.requestedHandleType = hipMemHandleTypeNone;
                error = hipMemCreate(&handle, piece_, &wanted, 0);
            }
#endif
            expect(error, "making memory");
            expect(HIER_VIRTUAL(hipMemMap, cuMemMap)(address(done), piece_, 0, handle, 0),
                   "mapping it");
            expect(HIER_VIRTUAL(hipMemRelease, cuMemRelease)(handle), "releasing it");
        }
#ifdef HIER_CUDA
        const CUmemAccessDesc access{wanted.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
#else
        const hipMemAccessDesc access{wanted.location, hipMemAccessFlagsProtReadWrite};
#endif
        expect(HIER_VIRTUAL(hipMemSetAccess, cuMemSetAccess)(base_, bytes_, &access, 1), "access");
    }
    // A copy from pageable memory may return before it has landed, and unmapping does not wait for it. ROCm 6 cannot
    // unmap all segments at once.
    void unmap()
    {
        (void)hipStreamSynchronize(nullptr);
        for (std::size_t done = 0; done < bytes_; done += piece_)
            (void)HIER_VIRTUAL(hipMemUnmap, cuMemUnmap)(address(done), piece_);
    }

    int device_;
    std::size_t piece_ = 0;
    std::size_t bytes_ = 0;
    VirtualAddress base_{};
    void* data_ = nullptr;
};

#undef HIER_VIRTUAL

}  // namespace hier_test
