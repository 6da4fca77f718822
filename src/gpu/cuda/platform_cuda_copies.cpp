// SPDX-License-Identifier: BSD-3-Clause
// CUDA: copies, and words behind them.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "gpu/common/platform.hpp"
#include "gpu/common/report.hpp"
#include "gpu/cuda/driver.hpp"
#include "gpu/cuda/links.hpp"
#include "hier/hier.h"

namespace hier::gpu {
namespace {

// Copies of at most this size go to the driver in one batch. A batch is issued several times as
// fast, and its copies run side by side. Larger copies go one by one, in the plan's staggered
// order, so that each one has the whole port.
//
// If every peer has links of its own, one copy at a time would leave the other links idle. Then all
// copies go in a batch. That is by reasoning only: no such board was at hand.
std::size_t max_batched() { return has_direct_links() ? SIZE_MAX : 16 << 20; }

hipError_t copy_each(hipStream_t stream, std::span<const Copy> copies)
{
    for (const Copy& c : copies) {
        const hipError_t error = hipMemcpyAsync(c.to, c.from, c.bytes, hipMemcpyDefault, stream);
        if (error != hipSuccess) return error;
    }
    return hipSuccess;
}

bool uses_host_pointers(int device)
{
    int same_address = 0;
    return driver.device_get_attribute(&same_address,
                                       CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
                                       device) == CUDA_SUCCESS &&
           same_address != 0;
}

#if CUDART_VERSION >= 12080
// There are no batches if the driver is older than the runtime. A batch also needs the device's
// address of registered host memory, which differs from the host's address under WSL.
bool has_batches()
{
    int version = 0, devices = 0;
    if (cudaDriverGetVersion(&version) != cudaSuccess || version < 12080 ||
        cudaGetDeviceCount(&devices) != cudaSuccess)
        return false;
    while (devices > 0 && uses_host_pointers(devices - 1)) devices--;
    return devices == 0;
}

hipError_t copy_batch(hipStream_t stream, std::span<const Copy> copies)
{
    constexpr std::size_t max_count = 64;
    std::array<void*, max_count> to{};
    std::array<const void*, max_count> from{};
    std::array<std::size_t, max_count> bytes{};
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    // Asks for copy engines. Inside a device CUDA uses a kernel in spite of that.
    attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
    std::size_t all = 0;  // the attributes hold from this index on
    const std::size_t count = std::min(copies.size(), max_count);
    for (std::size_t i = 0; i < count; i++) {
        to[i] = copies[i].to;
        from[i] = copies[i].from;
        bytes[i] = copies[i].bytes;
    }
#if CUDART_VERSION >= 13000
    const hipError_t error = cudaMemcpyBatchAsync(to.data(), from.data(), bytes.data(), count,
                                                  &attributes, &all, 1, stream);
#else
    std::size_t failed = 0;
    const hipError_t error =
        cudaMemcpyBatchAsync(to.data(), const_cast<void**>(from.data()), bytes.data(), count,
                             &attributes, &all, 1, &failed, stream);
#endif
    if (error != hipSuccess || count == copies.size()) return error;
    return copy_batch(stream, copies.subspan(count));
}
#else
bool has_batches() { return false; }

hipError_t copy_batch(hipStream_t stream, std::span<const Copy> copies)
{
    return copy_each(stream, copies);
}
#endif

}  // namespace

// One stream for all peers, which is the fastest behind a switch: each copy gets the whole port.
std::size_t stream_of(int lane)
{
    if (lane < 0) return static_cast<std::size_t>(-lane) - 1;
    return lane == Copy::inside ? 2 : 3;
}

hipError_t copy_all(hipStream_t stream, std::span<const Copy> copies)
{
    static std::atomic<bool> batches{has_batches()};
    const std::size_t max_bytes = copies.size() > 1 ? max_batched() : SIZE_MAX;
    while (!copies.empty()) {
        if (copies[0].rows > 1) {
            const hipError_t error = copy_rows(stream, copies[0]);
            if (error != hipSuccess) return error;
            copies = copies.subspan(1);
            continue;
        }
        const auto large = std::find_if(copies.begin(), copies.end(), [&](const Copy& c) {
            return c.bytes > max_bytes || c.rows > 1;
        });
        const auto small = static_cast<std::size_t>(large - copies.begin());
        const std::size_t count = std::max<std::size_t>(small, 1);
        const auto some = copies.first(count);
        const bool is_batch = batches;
        hipError_t error = is_batch ? copy_batch(stream, some) : copy_each(stream, some);
        if (error != hipSuccess && is_batch) {
            const char* const reason = hipGetErrorString(error);
            (void)hipGetLastError();
            error = copy_each(stream, some);  // some may be done twice, with the same bytes
            if (error == hipSuccess && batches.exchange(false))
                report(HIER_LOG_INFO, "CUDA refuses copies in batches (%s): one by one", reason);
        }
        if (error != hipSuccess) return error;
        copies = copies.subspan(count);
    }
    return hipSuccess;
}

bool can_store_words(int device)
{
    int words = 0;
    driver.device_get_attribute(&words, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device);
    return words != 0 && uses_host_pointers(device);
}

hipError_t store_words(hipStream_t stream, std::span<const Word> words)
{
    constexpr std::size_t max_count = 32;
    std::array<CUstreamBatchMemOpParams, max_count> operations;
    while (!words.empty()) {
        const std::size_t count = std::min(words.size(), max_count);
        for (std::size_t i = 0; i < count; i++) {
            operations[i] = {};
            operations[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
            operations[i].writeValue.address = reinterpret_cast<CUdeviceptr>(words[i].at);
            operations[i].writeValue.value64 = words[i].value;
        }
        const CUresult result =
            driver.stream_batch_mem_op(stream, static_cast<unsigned>(count), operations.data(), 0);
        if (result != CUDA_SUCCESS) return runtime_error(result);
        words = words.subspan(count);
    }
    return hipSuccess;
}

}  // namespace hier::gpu
