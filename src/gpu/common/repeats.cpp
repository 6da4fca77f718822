// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/common/repeats.hpp"

#include <algorithm>

#include "gpu/common/report.hpp"
#include "hier/hier.h"

namespace hier::gpu {
namespace {

constexpr int max_refusals = 8;  // one after the other; each attempt costs time

}  // namespace

LaunchValues values_of(const Exchange& arguments) { return {arguments.flag, arguments.done_value}; }

LaunchValues values_of(const FanOut& arguments)
{
    return {arguments.signals > 0 ? arguments.signal[0].value : 0, arguments.done_value};
}

bool is_same_call(const Exchange& a, const Exchange& b)
{
    return a.block == b.block && a.bytes == b.bytes && a.zone == b.zone && a.ranks == b.ranks &&
           a.rank == b.rank && a.stride == b.stride && a.control == b.control && a.stop == b.stop &&
           a.done == b.done && std::equal(a.to, a.to + a.ranks, b.to) &&
           std::equal(a.into, a.into + a.ranks, b.into);
}

static bool is_same_block(const FanOut::Block& a, const FanOut::Block& b)
{
    return a.from == b.from && a.bytes == b.bytes && a.is_narrow == b.is_narrow &&
           a.first == b.first && a.places == b.places;
}

// One step is of all signals.
bool is_same_call(const FanOut& a, const FanOut& b)
{
    const auto are_alike = [&](const FanOut::Signal& x, const FanOut::Signal& y) {
        return x.at == y.at && x.value - a.signal[0].value == y.value - b.signal[0].value;
    };
    return a.blocks == b.blocks && a.places == b.places && a.signals == b.signals &&
           a.done == b.done && std::equal(a.block, a.block + a.blocks, b.block, is_same_block) &&
           std::equal(a.to, a.to + a.places, b.to) &&
           std::equal(a.signal, a.signal + a.signals, b.signal, are_alike);
}

// A call that is not known takes the place of the one that was used the longest time ago.
template <class Arguments> auto Repeats<Arguments>::find(const Arguments& arguments) -> Call&
{
    for (Call& call : calls_)
        if (call.launches > 0 && is_same_call(call.first, arguments)) return call;
    Call& oldest =
        *std::min_element(calls_.begin(), calls_.end(),
                          [](const Call& a, const Call& b) { return a.last_used < b.last_used; });
    oldest.launches = 0;
    oldest.is_prepared = false;
    return oldest;
}

template <class Arguments>
hipError_t Repeats<Arguments>::launch(KernelLaunch kernel, hipStream_t stream, Arguments& arguments)
{
    Call& call = find(arguments);
    const LaunchValues values = values_of(arguments), step = values - call.last;
    const bool has_step = call.launches >= 2 && step == call.step;
    call.last_used = ++uses_;
    if (has_step && start_prepared(call, kernel, stream)) {
        call.last = values;
        return hipSuccess;
    }
    arguments.repeat = {};
    arguments.repeat.slot = first_slot_ + static_cast<unsigned>(&call - calls_.data());
    kernel.arguments = &arguments;
    call.is_prepared = false;
    const hipError_t error = launch_kernel(kernel, stream);
    call.launches = error == hipSuccess ? call.launches + 1 : 0;
    call.first = arguments;
    call.last = values;
    call.step = step;
    return error;
}

// The device has counted the launch of `first`, and the next one has the step of the last two.
template <class Arguments>
bool Repeats<Arguments>::start_prepared(Call& call, KernelLaunch kernel, hipStream_t stream)
{
    if (refusals_ == max_refusals) return false;
    if (call.kernel == nullptr) call.kernel = make_prepared_kernel();
    if (call.kernel == nullptr) return false;
    hipError_t error = hipSuccess;
    if (!call.is_prepared) {
        Arguments repeated = call.first;
        repeated.repeat.is_repeated = 1;
        repeated.repeat.step = call.step.call;
        repeated.repeat.done_step = call.step.done;
        kernel.arguments = &repeated;
        error = call.kernel->set(kernel);
    }
    if (error == hipSuccess) error = call.kernel->start(stream);
    call.is_prepared = error == hipSuccess;
    if (call.is_prepared) {
        refusals_ = 0;
        return true;
    }
    if (refusals_++ == 0)
        report(HIER_LOG_INFO, "%s refuses a kernel that is kept ready (%s)", platform_name,
               hipGetErrorString(error));
    (void)hipGetLastError();
    return false;
}

template <class Arguments> void Repeats<Arguments>::close()
{
    for (Call& call : calls_) call = {};
}

template <class Arguments> void Repeats<Arguments>::abandon()
{
    for (Call& call : calls_) {
        (void)call.kernel.release();
        call = {};
    }
}

template class Repeats<Exchange>;
template class Repeats<FanOut>;

}  // namespace hier::gpu
