// SPDX-License-Identifier: BSD-3-Clause
#include "gpu/common/repeats.hpp"

#include <algorithm>

#include "gpu/common/report.hpp"
#include "hier/hier.h"

namespace hier::gpu {
namespace {

constexpr int max_refusals = 8;  // one after the other; each attempt costs time

std::uint64_t key_of(const void* from, const void* to, std::uint64_t bytes)
{
    constexpr std::uint64_t odd = 0x9E3779B97F4A7C15;  // 2^64 / the golden ratio
    const auto mix = [](std::uint64_t key, std::uint64_t more) { return (key ^ more) * odd; };
    return mix(mix(reinterpret_cast<std::uint64_t>(from), reinterpret_cast<std::uint64_t>(to)),
               bytes);
}

std::uint64_t key_of(const Exchange& arguments)
{
    return key_of(arguments.block, arguments.into[0], arguments.bytes);
}

std::uint64_t key_of(const FanOut& arguments)
{
    return key_of(arguments.block[0].from, arguments.to[0], arguments.block[0].bytes);
}

bool is_same_block(const FanOut::Block& a, const FanOut::Block& b)
{
    return a.from == b.from && a.bytes == b.bytes && a.is_narrow == b.is_narrow &&
           a.first == b.first && a.places == b.places;
}

}  // namespace

bool is_same_call(const Exchange& a, const Exchange& b)
{
    return a.block == b.block && a.bytes == b.bytes && a.zone == b.zone && a.ranks == b.ranks &&
           a.rank == b.rank && a.stride == b.stride && a.control == b.control && a.stop == b.stop &&
           a.done == b.done && std::equal(a.to, a.to + a.ranks, b.to) &&
           std::equal(a.into, a.into + a.ranks, b.into);
}

// The values of all signals grow alike.
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
    const std::uint64_t key = key_of(arguments);
    for (Call& call : calls_)
        if (call.key == key && call.launches > 0 && is_same_call(*call.first, arguments))
            return call;
    Call& oldest =
        *std::min_element(calls_.begin(), calls_.end(),
                          [](const Call& a, const Call& b) { return a.last_used < b.last_used; });
    oldest.key = key;
    oldest.launches = 0;
    oldest.is_prepared = false;
    return oldest;
}

template <class Arguments>
hipError_t Repeats<Arguments>::launch(KernelLaunch kernel, hipStream_t stream, Arguments& arguments)
{
    Call& call = find(arguments);
    call.last_used = ++uses_;
    if (call.launches >= 2 && start_prepared(call, kernel, stream, arguments)) return hipSuccess;
    values_.make_plain(arguments);
    kernel.arguments = &arguments;
    // Behind a launch nothing is allocated, because a failure there would lose a kernel that runs.
    if (call.first == nullptr) call.first = std::make_unique<Arguments>();
    if (call.launches == 0) *call.first = arguments;
    const hipError_t error = launch_kernel(kernel, stream);
    if (error == hipSuccess) values_.launched(arguments);
    call.launches = error == hipSuccess ? call.launches + 1 : 0;
    return error;
}

template <class Arguments>
bool Repeats<Arguments>::start_prepared(Call& call, KernelLaunch kernel, hipStream_t stream,
                                        const Arguments& arguments)
{
    if (refusals_ == max_refusals || !values_.may_repeat(arguments, slot_of(call))) return false;
    if (call.kernel == nullptr) call.kernel = make_prepared_kernel();
    if (call.kernel == nullptr) return false;
    hipError_t error = call.is_prepared ? hipSuccess : prepare(call, kernel);
    if (error == hipSuccess) {
        values_.tell(arguments, slot_of(call));
        error = call.kernel->start(stream);
    }
    call.is_prepared = error == hipSuccess;
    if (call.is_prepared) {
        values_.launched(arguments);
        refusals_ = 0;
        return true;
    }
    if (refusals_++ == 0)
        report(HIER_LOG_INFO, "%s refuses a kernel that is kept ready (%s)", platform_name,
               hipGetErrorString(error));
    (void)hipGetLastError();
    return false;
}

template <class Arguments> hipError_t Repeats<Arguments>::prepare(Call& call, KernelLaunch kernel)
{
    Arguments prepared = *call.first;
    values_.make_repeat(prepared, slot_of(call));
    kernel.arguments = &prepared;
    return call.kernel->set(kernel);
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
    values_.close();
}

template class Repeats<Exchange>;
template class Repeats<FanOut>;

}  // namespace hier::gpu
