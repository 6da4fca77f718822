// SPDX-License-Identifier: BSD-3-Clause
// Copies, fills and stores. They are done in parts, not always from front to back, so that a look
// before the end sees a part of the bytes.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "calls.hpp"
#include "hip_sim.h"
#include "memory.hpp"
#include "place.hpp"
#include "stream.hpp"

using namespace hip_sim;

namespace {

constexpr int no_cu =
    1024;  // hipMemcpyDeviceToDeviceNoCU, which the header of HIP 5.2 does not have

// Do so many bytes from the block's base lie in this block, or in segments that follow one another?
bool is_covered(Block block, std::size_t bytes)
{
    while (block.may_be_copied && bytes > block.bytes) {
        const auto next = find(block.base + block.bytes);
        const bool goes_on = block.kind == Kind::segment && next && next->kind == Kind::segment &&
                             next->alias == block.alias + block.bytes;
        if (!goes_on) return false;
        bytes -= block.bytes;
        block = *next;
    }
    return block.may_be_copied;
}

}  // namespace

bool hip_sim::locate(const void* address, std::size_t bytes, Place& place)
{
    if (address == nullptr) return false;
    const auto* const first = static_cast<const std::byte*>(address);
    const auto block = find(first);
    if (!block) {
        place = {const_cast<std::byte*>(first), true, true, false};
        return !overlaps(first, bytes);
    }
    const auto offset = static_cast<std::size_t>(first - block->base);
    place = {block->alias + offset, false, !block->is_on_device(),
             block->is_on_device() || block->kind == Kind::managed, block->kind == Kind::mapped};
    return is_covered(*block, offset + bytes);
}

namespace {

// HIP's copies of rows ask the memory of the first byte whether it has all rows. It is not known
// what all drivers do with rows that end in other memory, so the product never asks for that.
bool lies_in_one_block(const void* address, std::size_t bytes)
{
    const auto block = find(address);
    const auto last = find(static_cast<const std::byte*>(address) + bytes - 1);
    if (block && last && block->base != last->base)
        give_up("copies of rows that end in another allocation are not simulated");
    return !block || static_cast<const std::byte*>(address) + bytes <= block->base + block->bytes;
}

bool does_kind_fit(int kind, const Place& to, const Place& from)
{
    switch (kind) {
    case hipMemcpyHostToHost:
        return from.may_be_host && to.may_be_host;
    case hipMemcpyHostToDevice:
        return from.may_be_host && to.may_be_device;
    case hipMemcpyDeviceToHost:
        return from.may_be_device && to.may_be_host;
    case hipMemcpyDeviceToDevice:
        return from.may_be_device && to.may_be_device;
    case hipMemcpyDefault:
        return true;
    case no_cu:
        return options().has_no_cu_kind && from.may_be_device && to.may_be_device;
    default:
        give_up("copies of kind %d are not simulated", kind);
    }
}

// Copies a word in one access, as engines do, because it may be a flag.
bool move_word(std::byte* to, const std::byte* from)
{
    constexpr auto odd = sizeof(std::uint64_t) - 1;
    if (((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) & odd) !=
        0)
        return false;
    const auto word =
        __atomic_load_n(reinterpret_cast<const std::uint64_t*>(from), __ATOMIC_RELAXED);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(to), word, __ATOMIC_RELEASE);
    return true;
}

// Calls do_part(offset, bytes) for two or three parts. In half of the calls the last part comes
// first.
template <class Part> void in_parts(std::size_t bytes, Random& random, Part&& do_part)
{
    const std::size_t unit = bytes > 128 ? 64 : 8;
    const std::size_t wanted = 2 + random() % 2;
    const std::size_t length = ((bytes + wanted - 1) / wanted + unit - 1) / unit * unit;
    const std::size_t parts = (bytes + length - 1) / length;
    const bool is_backwards = random() % 2 != 0;
    for (std::size_t i = 0; i < parts; i++) {
        if (i > 0) pause_for_a_while(random);
        const std::size_t offset = length * (is_backwards ? parts - 1 - i : i);
        if (!do_part(offset, std::min(length, bytes - offset))) return;
    }
}

std::atomic<std::uint64_t> asynchronous_copies{0};
std::atomic<std::uint64_t> forced_copies{0};
std::atomic<std::uint64_t> host_bytes{0};

std::atomic<std::uint64_t>& failing_copy()
{
    static std::atomic<std::uint64_t> copy{options().failing_copy};
    return copy;
}

std::atomic<std::uint64_t>& hanging_copy()
{
    static std::atomic<std::uint64_t> copy{options().hanging_copy};
    return copy;
}

// Copies that are not asynchronous have number 0, and never hang.
void hang(std::uint64_t copy)
{
    while (copy != 0 && copy == hanging_copy())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

struct Shape {
    std::size_t bytes;
    std::size_t rows = 1;
    std::size_t to_pitch = 0;
    std::size_t from_pitch = 0;

    std::size_t span(std::size_t pitch) const { return (rows - 1) * pitch + bytes; }
};

// A copy that fails or hangs does its first part.
bool transfer(std::byte* to, const std::byte* from, const Shape& shape, bool fails,
              std::uint64_t number, Random& random)
{
    const std::size_t bytes = shape.bytes;
    if (shape.rows > 1) {
        in_parts(shape.rows, random, [&](std::size_t first, std::size_t rows) {
            for (std::size_t row = first; row < first + rows; row++)
                std::memmove(to + row * shape.to_pitch, from + row * shape.from_pitch, bytes);
            hang(number);
            return !fails;
        });
        return !fails;
    }
    if (bytes == sizeof(std::uint64_t) && !fails) hang(number);
    if (bytes == sizeof(std::uint64_t) && !fails && move_word(to, from)) return true;
    in_parts(bytes, random, [&](std::size_t offset, std::size_t length) {
        std::memmove(to + offset, from + offset, length);
        hang(number);
        return !fails;
    });
    return !fails;
}

bool fill(std::byte* to, int value, std::size_t bytes, Random& random)
{
    in_parts(bytes, random, [&](std::size_t offset, std::size_t length) {
        std::memset(to + offset, value, length);
        return true;
    });
    return true;
}

hipError_t start(hipStream_t stream, Operation operation, bool is_awaited)
{
    MarkRef mark;
    if (!enqueue(stream, std::move(operation), mark)) return hipErrorInvalidHandle;
    return is_awaited ? wait_for({mark}) : hipSuccess;
}

hipError_t copy(void* to, const void* from, const Shape& shape, hipMemcpyKind kind,
                hipStream_t stream, bool is_asynchronous)
{
    if (shape.bytes == 0 || shape.rows == 0)
        return is_stream(stream) ? hipSuccess : hipErrorInvalidHandle;
    Place target;
    Place source;
    if (!locate(to, shape.span(shape.to_pitch), target) ||
        !locate(from, shape.span(shape.from_pitch), source))
        return hipErrorInvalidValue;
    const int number = static_cast<int>(kind);
    if (!does_kind_fit(number, target, source)) return hipErrorInvalidValue;
    if (!is_asynchronous && number == no_cu) return hipErrorInvalidValue;

    // As if no engine were free: there is no error, and nothing is done (rocm-systems, pull request
    // 11318).
    constexpr int losing_version = 71500000;
    const bool is_lost =
        number == no_cu && target.is_of_peer && options().version >= losing_version;
    forced_copies += number == no_cu ? 1 : 0;
    if (target.may_be_host != source.may_be_host) host_bytes += shape.rows * shape.bytes;
    totals.copies++;
    const std::uint64_t place = is_asynchronous ? ++asynchronous_copies : 0;
    const bool fails = is_asynchronous && place == failing_copy();
    // The stream reads pageable memory when it gets there. Writes to such memory are awaited here.
    return start(stream,
                 {[=](Random& r) {
                      return is_lost || transfer(target.at, source.at, shape, fails, place, r);
                  },
                  {}},
                 !is_asynchronous || target.is_pageable);
}

hipError_t set(void* to, int value, std::size_t bytes, hipStream_t stream, bool is_awaited)
{
    if (bytes == 0) return is_stream(stream) ? hipSuccess : hipErrorInvalidHandle;
    Place target;
    if (!locate(to, bytes, target) || target.is_pageable) return hipErrorInvalidValue;
    totals.kernels++;
    return start(stream, {[=](Random& r) { return fill(target.at, value, bytes, r); }, {}},
                 is_awaited);
}

hipError_t write(hipStream_t stream, void* to, std::uint64_t value, unsigned flags)
{
    if (flags != 0) give_up("hipStreamWriteValue64 with flags 0x%x is not simulated", flags);
    Place target;
    if (reinterpret_cast<std::uintptr_t>(to) % sizeof value != 0) return hipErrorInvalidValue;
    if (!locate(to, sizeof value, target) || target.is_pageable) return hipErrorInvalidValue;
    totals.kernels++;
    const auto store = [=](Random&) {
        __atomic_store_n(reinterpret_cast<std::uint64_t*>(target.at), value, __ATOMIC_RELEASE);
        return true;
    };
    return start(stream, {store, {}}, false);
}

}  // namespace

std::uint64_t hip_sim_copies() { return asynchronous_copies; }

std::uint64_t hip_sim_forced_copies() { return forced_copies; }

std::uint64_t hip_sim_host_bytes() { return host_bytes; }

void hip_sim_fail_copy_at(std::uint64_t copy) { failing_copy() = copy; }

void hip_sim_hang_copy_at(std::uint64_t copy) { hanging_copy() = copy; }

hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind)
{
    return counted(forbidden_by_capture, broken,
                   [&] { return copy(to, from, {bytes}, kind, nullptr, false); });
}

hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                          hipStream_t stream)
{
    return counted(broken, [&] { return copy(to, from, {bytes}, kind, stream, true); });
}

hipError_t hipMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                            std::size_t from_pitch, std::size_t bytes, std::size_t rows,
                            hipMemcpyKind kind, hipStream_t stream)
{
    return counted(broken, [&] {
        constexpr std::size_t largest = INT32_MAX;  // hipDeviceAttributeMaxPitch
        if (bytes > to_pitch || bytes > from_pitch || to_pitch > largest || from_pitch > largest)
            return hipErrorInvalidPitchValue;
        if (rows > 0 && (!lies_in_one_block(to, (rows - 1) * to_pitch + bytes) ||
                         !lies_in_one_block(from, (rows - 1) * from_pitch + bytes)))
            return hipErrorInvalidValue;
        return copy(to, from, {bytes, rows, to_pitch, from_pitch}, kind, stream, true);
    });
}

hipError_t hipMemset(void* to, int value, std::size_t bytes)
{
    return counted(forbidden_by_capture, broken,
                   [&] { return set(to, value, bytes, nullptr, true); });
}

hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes, hipStream_t stream)
{
    return counted(broken, [&] { return set(to, value, bytes, stream, false); });
}

hipError_t hipStreamWriteValue64(hipStream_t stream, void* to, std::uint64_t value, unsigned flags)
{
    return counted(broken, [&] { return write(stream, to, value, flags); });
}
