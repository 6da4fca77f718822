// SPDX-License-Identifier: BSD-3-Clause
// CUDA's driver. The module opens the driver itself, so that the module also loads where there is
// none. Some functions here have HIP's names: those that only the driver has, or that only it does
// right.
#pragma once

#include <cuda.h>

#include "gpu/common/names.hpp"

namespace hier::gpu {

struct Driver {
    CUresult (*context_get)(CUcontext*);
    CUresult (*context_set)(CUcontext);
    CUresult (*context_pop)(CUcontext*);
    CUresult (*context_push)(CUcontext);
    CUresult (*context_get_flags)(unsigned*);
    CUresult (*context_set_flags)(unsigned);                     // from CUDA 12.1 on
    CUresult (*context_get_id)(CUcontext, unsigned long long*);  // from CUDA 12.0 on
    CUresult (*primary_context_get_state)(CUdevice, unsigned*, int*);
    CUresult (*primary_context_retain)(CUcontext*, CUdevice);
    CUresult (*primary_context_release)(CUdevice);
    CUresult (*device_get_attribute)(int*, CUdevice_attribute, CUdevice);
    CUresult (*event_query)(CUevent);
    // Of graphs. All of them, or graph_launch is nullptr.
    CUresult (*graph_add_kernel_node)(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,
                                      const CUDA_KERNEL_NODE_PARAMS*);
    CUresult (*graph_create)(CUgraph*, unsigned);
    CUresult (*graph_destroy)(CUgraph);
    CUresult (*graph_instantiate)(CUgraphExec*, CUgraph, unsigned long long);
    CUresult (*graph_exec_destroy)(CUgraphExec);
    CUresult (*graph_exec_set_kernel_node)(CUgraphExec, CUgraphNode,
                                           const CUDA_KERNEL_NODE_PARAMS*);
    CUresult (*graph_launch)(CUgraphExec, CUstream);
    CUresult (*memory_address_free)(CUdeviceptr, std::size_t);
    CUresult (*memory_address_range)(CUdeviceptr*, std::size_t*, CUdeviceptr);
    CUresult (*memory_address_reserve)(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr,
                                       unsigned long long);
    CUresult (*memory_export)(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                              unsigned long long);
    CUresult (*memory_import)(CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType);
    CUresult (*memory_map)(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle,
                           unsigned long long);
    CUresult (*memory_release)(CUmemGenericAllocationHandle);
    CUresult (*memory_retain)(CUmemGenericAllocationHandle*, void*);
    CUresult (*memory_set_access)(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t);
    CUresult (*memory_unmap)(CUdeviceptr, std::size_t);
    CUresult (*kernel_launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, unsigned, CUstream, void**, void**);
    CUresult (*module_get_function)(CUfunction*, CUmodule, const char*);
    CUresult (*module_load)(CUmodule*, const char*);
    CUresult (*module_unload)(CUmodule);
    CUresult (*pointer_get_attributes)(unsigned, CUpointer_attribute*, void**, CUdeviceptr);
    CUresult (*pointer_set_attribute)(const void*, CUpointer_attribute, CUdeviceptr);
    CUresult (*stream_query)(CUstream);
    CUresult (*stream_synchronize)(CUstream);
    CUresult (*stream_batch_mem_op)(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);
    CUresult (*thread_exchange_capture_mode)(CUstreamCaptureMode*);
};
extern Driver driver;

inline hipError_t runtime_error(CUresult result)
{
    return result == CUDA_SUCCESS ? hipSuccess : static_cast<hipError_t>(result);
}

using hipFunction_t = CUfunction;
using hipMemAccessDesc = CUmemAccessDesc;
using hipMemGenericAllocationHandle_t = CUmemGenericAllocationHandle;
using hipModule_t = CUmodule;
using hipStreamCaptureMode = CUstreamCaptureMode;
constexpr auto hipMemAccessFlagsProtReadWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
constexpr auto hipMemHandleTypePosixFileDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr auto hipMemLocationTypeDevice = CU_MEM_LOCATION_TYPE_DEVICE;
constexpr auto hipStreamCaptureModeRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

inline hipError_t hipMemAddressFree(void* base, std::size_t bytes)
{
    return runtime_error(driver.memory_address_free(reinterpret_cast<CUdeviceptr>(base), bytes));
}
inline hipError_t hipMemAddressReserve(void** base, std::size_t bytes, std::size_t alignment,
                                       void* wanted, unsigned long long flags)
{
    CUdeviceptr reserved = 0;
    const CUresult result = driver.memory_address_reserve(
        &reserved, bytes, alignment, reinterpret_cast<CUdeviceptr>(wanted), flags);
    *base = reinterpret_cast<void*>(reserved);
    return runtime_error(result);
}
inline hipError_t hipMemExportToShareableHandle(void* shared,
                                                hipMemGenericAllocationHandle_t handle,
                                                CUmemAllocationHandleType type,
                                                unsigned long long flags)
{
    return runtime_error(driver.memory_export(shared, handle, type, flags));
}
inline hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t* handle,
                                                  void* shared, CUmemAllocationHandleType type)
{
    return runtime_error(driver.memory_import(handle, shared, type));
}
inline hipError_t hipMemMap(void* at, std::size_t bytes, std::size_t offset,
                            hipMemGenericAllocationHandle_t handle, unsigned long long flags)
{
    return runtime_error(
        driver.memory_map(reinterpret_cast<CUdeviceptr>(at), bytes, offset, handle, flags));
}
inline hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle)
{
    return runtime_error(driver.memory_release(handle));
}
inline hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t* handle, void* at)
{
    return runtime_error(driver.memory_retain(handle, at));
}
inline hipError_t hipMemSetAccess(void* at, std::size_t bytes, const hipMemAccessDesc* access,
                                  std::size_t count)
{
    return runtime_error(
        driver.memory_set_access(reinterpret_cast<CUdeviceptr>(at), bytes, access, count));
}
inline hipError_t hipMemUnmap(void* at, std::size_t bytes)
{
    return runtime_error(driver.memory_unmap(reinterpret_cast<CUdeviceptr>(at), bytes));
}
inline hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module,
                                       const char* name)
{
    return runtime_error(driver.module_get_function(function, module, name));
}
inline hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned blocks_x,
                                        unsigned blocks_y, unsigned blocks_z, unsigned threads_x,
                                        unsigned threads_y, unsigned threads_z, unsigned shared,
                                        hipStream_t stream, void** arguments, void** extra)
{
    return runtime_error(driver.kernel_launch(function, blocks_x, blocks_y, blocks_z, threads_x,
                                              threads_y, threads_z, shared, stream, arguments,
                                              extra));
}
inline hipError_t hipModuleLoad(hipModule_t* module, const char* file)
{
    return runtime_error(driver.module_load(module, file));
}
inline hipError_t hipModuleUnload(hipModule_t module)
{
    return runtime_error(driver.module_unload(module));
}
// The runtime has these too. But there a thread without a context gets one on device 0, which takes
// 0.1 s and half a GB.
inline hipError_t hipEventQuery(hipEvent_t event)
{
    return runtime_error(driver.event_query(event));
}
inline hipError_t hipStreamQuery(hipStream_t stream)
{
    return runtime_error(driver.stream_query(stream));
}
inline hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode)
{
    return runtime_error(driver.thread_exchange_capture_mode(mode));
}

}  // namespace hier::gpu
