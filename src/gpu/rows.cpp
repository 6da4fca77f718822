// Copies of rows: what a derived datatype leaves of an array.
#include <algorithm>

#include "gpu/platform.hpp"

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

// One by one where the runtime does not take them as they are: memory that consists of several pieces
// (HIP asks whether one piece has all rows), or pitches beyond what it takes.
hipError_t copy_rows(hipStream_t stream, const Copy& copy)
{
    constexpr std::size_t at_once = 128 << 20;  // bytes: of more an MI355X has hung
    const std::size_t rows = std::max<std::size_t>(at_once / copy.bytes, 1);
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
