// SPDX-License-Identifier: BSD-3-Clause
// Where a prepared kernel finds the values that change from launch to launch: it counts on the device, or
// adds what it reads in the host's memory. A `slot` is the number of a known call.
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
    // May a prepared kernel be started in place of one with these arguments?
    bool may_repeat(const Exchange& arguments, unsigned) const
    {
        return arguments.is_next != 0 && arguments.done != nullptr &&
               arguments.done_value == last_done_ + 1;
    }
    // Makes these arguments those of a prepared kernel.
    static void make_repeat(Exchange& arguments, unsigned) { arguments.is_counted = 1; }
    // Makes them those of any other kernel.
    static void make_plain(Exchange& arguments) { arguments.is_counted = 0; }
    // A prepared kernel is about to start in place of one with these arguments.
    static void tell(const Exchange&, unsigned) {}
    // A kernel has been launched, of either kind.
    void launched(const Exchange& arguments) { last_done_ = arguments.done_value; }
    void close() { last_done_ = 0; }

private:
    std::uint64_t last_done_ = 0;
};

// A kernel reads while it copies, so that costs no time. Each slot has a place for the values. The place is filled
// again only when the last prepared kernel of the slot has ended, whatever its call was.
class FanOutValues {
public:
    using Places = std::array<FanOut::Added, known_calls>;

    // The device reads them.
    void open(Places& places) { places_ = &places; }
    bool may_repeat(const FanOut& arguments, unsigned slot) const
    {
        return places_ != nullptr && arguments.done != nullptr &&
               __atomic_load_n(arguments.done, __ATOMIC_ACQUIRE) >= read_by_[slot];
    }
    void make_repeat(FanOut& arguments, unsigned slot) const
    {
        const std::uint64_t base = base_of(arguments);
        for (std::uint32_t s = 0; s < arguments.signals; s++) arguments.signal[s].value -= base;
        arguments.done_value = 0;
        arguments.added = &(*places_)[slot];
    }
    static void make_plain(FanOut& arguments) { arguments.added = nullptr; }
    void tell(const FanOut& arguments, unsigned slot)
    {
        (*places_)[slot] = {base_of(arguments), arguments.done_value};
        read_by_[slot] = arguments.done_value;
    }
    static void launched(const FanOut&) {}
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
