// SPDX-License-Identifier: BSD-3-Clause
// Where a prepared kernel finds the values that change from launch to launch: it counts on the device, or
// adds what it reads in the host's memory. `call` is the number of the kernel's call, below known_calls.
#pragma once

#include <array>
#include <cstdint>

#include "hier/gpu_exchange.hpp"
#include "hier/gpu_fan_out.hpp"

namespace hier::gpu {

// Programs that train a model have some buffers for each of its layers.
constexpr unsigned known_calls = 64;

// Most kernels have a flag and a value at their end that are the next ones. Such a kernel counts.
class ExchangeValues {
public:
    // Would a prepared kernel find the values of these arguments?
    bool are_found(const Exchange& arguments, unsigned) const
    {
        return arguments.is_next != 0 && arguments.done != nullptr &&
               arguments.done_value == last_done_ + 1;
    }
    // Makes the arguments of a prepared kernel.
    static void leave_out(Exchange& arguments, unsigned) { arguments.is_next = 1; }
    // Makes those of any other kernel.
    static void put_in(Exchange& arguments) { arguments.is_next = 0; }
    // A prepared kernel is about to start, which would find these values.
    static void tell(const Exchange&, unsigned) {}
    // A kernel has been launched.
    void count(const Exchange& arguments) { last_done_ = arguments.done_value; }
    void close() { last_done_ = 0; }

private:
    std::uint64_t last_done_ = 0;
};

// A kernel reads while it copies, so that costs no time. Each call has a place for its values. It is filled again only
// when its last kernel has ended.
class FanOutValues {
public:
    using Places = std::array<FanOut::Added, known_calls>;

    // The device reads them.
    void open(Places& places) { places_ = &places; }
    bool are_found(const FanOut& arguments, unsigned call) const
    {
        return places_ != nullptr && arguments.done != nullptr &&
               __atomic_load_n(arguments.done, __ATOMIC_ACQUIRE) >= read_by_[call];
    }
    void leave_out(FanOut& arguments, unsigned call) const
    {
        const std::uint64_t base = base_of(arguments);
        for (std::uint32_t s = 0; s < arguments.signals; s++) arguments.signal[s].value -= base;
        arguments.done_value = 0;
        arguments.added = &(*places_)[call];
    }
    static void put_in(FanOut& arguments) { arguments.added = nullptr; }
    void tell(const FanOut& arguments, unsigned call)
    {
        (*places_)[call] = {base_of(arguments), arguments.done_value};
        read_by_[call] = arguments.done_value;
    }
    static void count(const FanOut&) {}
    void close() { places_ = nullptr; }

private:
    // The values of all signals grow alike.
    static std::uint64_t base_of(const FanOut& arguments)
    {
        return arguments.signals > 0 ? arguments.signal[0].value : 0;
    }

    Places* places_ = nullptr;
    std::array<std::uint64_t, known_calls> read_by_{};  // the values at the end of those kernels
};

template <class Arguments> struct ValuesFor;
template <> struct ValuesFor<Exchange> {
    using Type = ExchangeValues;
};
template <> struct ValuesFor<FanOut> {
    using Type = FanOutValues;
};
template <class Arguments> using ValuesOf = typename ValuesFor<Arguments>::Type;

}  // namespace hier::gpu
