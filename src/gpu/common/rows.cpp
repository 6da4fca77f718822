// SPDX-License-Identifier: BSD-3-Clause
// Copies of rows. A derived datatype that selects parts of an array makes them.
#include <algorithm>

#include "gpu/common/platform.hpp"

namespace hier::gpu {
namespace {

std::byte* at(const void* base, std::size_t offset)
{
    return const_cast<std::byte*>(static_cast<const std::byte*>(base)) + offset;
}

Copy some_of(const Copy& copy, std::size_t first, std::size_t rows)
{
    Copy some = copy;
    some.to = at(copy.to, first * copy.to_pitch);
    some.from = at(copy.from, first * copy.from_pitch);
    some.rows = rows;
    return some;
}

// Do the first and the last byte lie in the same allocation? A datatype may join several. No driver
// documents how it copies rows that lie in several allocations.
bool is_in_one(const void* base, std::size_t span)
{
    Allocation first, last;
    hipError_t error = inspect_pointer(base, first);
    if (error == hipSuccess) error = inspect_pointer(at(base, span - 1), last);
    if (error != hipSuccess) (void)hipGetLastError();
    return error == hipSuccess && first.kind == last.kind && first.base == last.base &&
           first.id == last.id;
}

hipError_t one_by_one(hipStream_t stream, const Copy& copy)
{
    for (std::size_t row = 0; row < copy.rows; row++) {
        const Copy one = some_of(copy, row, 1);
        const hipError_t error = copy_all(stream, {&one, 1});
        if (error != hipSuccess) return error;
    }
    return hipSuccess;
}

}  // namespace

// Copies the rows one by one if the runtime refuses to copy them at once, as it does for large
// pitches.
hipError_t copy_rows(hipStream_t stream, const Copy& copy)
{
    constexpr std::size_t at_once = 128 << 20;  // bytes; a larger copy has hung an MI355X
    if (copy.bytes == 0 || copy.bytes > at_once ||
        !is_in_one(copy.to, (copy.rows - 1) * copy.to_pitch + copy.bytes) ||
        !is_in_one(copy.from, (copy.rows - 1) * copy.from_pitch + copy.bytes))
        return one_by_one(stream, copy);
    const std::size_t rows = at_once / copy.bytes;
    for (std::size_t done = 0; done < copy.rows; done += rows) {
        const Copy some = some_of(copy, done, std::min(rows, copy.rows - done));
        hipError_t error = hipMemcpy2DAsync(some.to, some.to_pitch, some.from, some.from_pitch,
                                            some.bytes, some.rows, hipMemcpyDefault, stream);
        if (error != hipSuccess) {
            (void)hipGetLastError();
            error = one_by_one(stream, some);
        }
        if (error != hipSuccess) return error;
    }
    return hipSuccess;
}

}  // namespace hier::gpu
