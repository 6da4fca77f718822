// SPDX-License-Identifier: BSD-3-Clause
// The simulated HIP runtime's functions, by their binary interface, because HIP's and CUDA's
// headers cannot be included together. Errors have the same numbers in both.
#pragma once

#include <hip/hip_version.h>

#include <cstddef>
#include <cstdint>

extern "C" {

struct HipIpcHandle {
    char bytes[64];
};

struct HipLocation {
    int type, id;
};

struct HipAllocationProp {  // hipMemAllocationProp
#if HIP_VERSION_MAJOR == 5 && HIP_VERSION_MINOR < 3
    unsigned char compression_type;
    HipLocation location;
    int handle_type;
    int type;
    unsigned short usage;
    void* win32;
#else
    int type;
    int handle_type;
    HipLocation location;
    void* win32;
    unsigned char compression_type, rdma;
    unsigned short usage;
#endif
};

int hipDeviceGetPCIBusId(char*, int, int);
int hipDeviceGetStreamPriorityRange(int*, int*);
int hipEventCreateWithFlags(void**, unsigned);
int hipEventDestroy(void*);
int hipEventQuery(void*);
int hipEventRecord(void*, void*);
int hipFree(void*);
int hipFreeAsync(void*, void*);
int hipGetDevice(int*);
int hipGetDeviceCount(int*);
const char* hipGetErrorName(int);
const char* hipGetErrorString(int);
int hipGetLastError();
int hipHostFree(void*);
int hipHostMalloc(void**, std::size_t, unsigned);
int hipHostRegister(void*, std::size_t, unsigned);
int hipHostUnregister(void*);
int hipIpcCloseMemHandle(void*);
int hipIpcGetMemHandle(HipIpcHandle*, void*);
int hipIpcOpenMemHandle(void**, HipIpcHandle, unsigned);
int hipMalloc(void**, std::size_t);
int hipMallocAsync(void**, std::size_t, void*);
int hipMallocManaged(void**, std::size_t, unsigned);
int hipMemAddressFree(void*, std::size_t);
int hipMemAddressReserve(void**, std::size_t, std::size_t, void*, unsigned long long);
int hipMemCreate(void**, std::size_t, const HipAllocationProp*, unsigned long long);
int hipMemExportToShareableHandle(void*, void*, int, unsigned long long);
int hipMemGetAllocationGranularity(std::size_t*, const HipAllocationProp*, int);
int hipMemImportFromShareableHandle(void**, void*, int);
int hipMemMap(void*, std::size_t, std::size_t, void*, unsigned long long);
int hipMemRelease(void*);
int hipMemRetainAllocationHandle(void**, void*);
int hipMemSetAccess(void*, std::size_t, const void*, std::size_t);
int hipMemUnmap(void*, std::size_t);
int hipModuleGetFunction(void**, void*, const char*);
int hipModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          unsigned, void*, void**, void**);
int hipModuleLoad(void**, const char*);
int hipModuleUnload(void*);
int hipMemcpy(void*, const void*, std::size_t, int);
int hipMemcpy2DAsync(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, int,
                     void*);
int hipMemcpyAsync(void*, const void*, std::size_t, int, void*);
int hipPeekAtLastError();
int hipSetDevice(int);
int hipStreamBeginCapture(void*, int);
int hipStreamCreateWithFlags(void**, unsigned);
int hipStreamCreateWithPriority(void**, unsigned, int);
int hipStreamDestroy(void*);
int hipStreamEndCapture(void*, void**);
int hipStreamQuery(void*);
int hipStreamSynchronize(void*);
int hipStreamWriteValue64(void*, void*, std::uint64_t, unsigned);
int hipThreadExchangeStreamCaptureMode(int*);

}  // extern "C"
