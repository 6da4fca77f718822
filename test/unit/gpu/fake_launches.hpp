// SPDX-License-Identifier: BSD-3-Clause
// A fake device for launches that repeat an earlier one. It counts and adds as the kernels do. A kernel that is late
// finds its values when the test ends it. For one source of a program: it defines what the driver has.
#pragma once

#include "gpu/common/repeats.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/common/report.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier::gpu;
using namespace hier::test;

struct Values {
    std::uint64_t call = 0, done = 0;
    bool operator==(const Values&) const = default;
};

// What the last kernel has used, and how the fake answers.
struct Device {
    Values used;
    std::uint64_t used_second = 0;               // of the second signal
    std::map<const void*, std::uint64_t> flags;  // by zone
    std::uint64_t done = 0;
    unsigned plain = 0, prepared = 0, sets = 0, destroyed = 0;
    bool has_prepared = true, refuses_set = false, refuses_start = false, refuses_launch = false;
    bool is_late = false;
    std::vector<std::function<void()>> running;

    void end_all()
    {
        for (const auto& end : std::exchange(running, {})) end();
    }
} device;

void find_values(const Exchange& a)
{
    std::uint64_t& flag = device.flags[a.zone];
    device.used = {a.flag, a.done_value};
    if (a.is_counted != 0) device.used = {flag + 1, device.done + 1};
    flag = device.used.call;
    device.done = device.used.done;
}

void find_values(const FanOut& a)
{
    const FanOut::Added added = a.added != nullptr ? *a.added : FanOut::Added{0, 0};
    device.used = {a.signal[0].value + added.signals, a.done_value + added.done};
    device.used_second = a.signal[1].value + added.signals;
}

template <class Arguments> void run(const Arguments& a)
{
    device.running.push_back([a] {
        find_values(a);
        if (a.done != nullptr) *a.done = device.used.done;
    });
    if (!device.is_late) device.end_all();
}

bool is_fan_out(hipFunction_t function) { return function != nullptr; }
const auto fan_out = reinterpret_cast<hipFunction_t>(&device);

std::set<PreparedKernel*> alive;

class FakeKernel final : public PreparedKernel {
public:
    FakeKernel() { alive.insert(this); }
    FakeKernel(const FakeKernel&) = delete;
    FakeKernel& operator=(const FakeKernel&) = delete;
    ~FakeKernel() override
    {
        alive.erase(this);
        device.destroyed++;
    }
    hipError_t set(const KernelLaunch& kernel) override
    {
        device.sets++;
        if (device.refuses_set) return hipErrorUnknown;
        kernel_ = kernel;
        if (is_fan_out(kernel.function))
            fan_out_ = *static_cast<const FanOut*>(kernel.arguments);
        else
            exchange_ = *static_cast<const Exchange*>(kernel.arguments);
        return hipSuccess;
    }
    hipError_t start(hipStream_t) override
    {
        if (device.refuses_start) return hipErrorUnknown;
        device.prepared++;
        is_fan_out(kernel_.function) ? run(fan_out_) : run(exchange_);
        return hipSuccess;
    }

private:
    KernelLaunch kernel_;
    Exchange exchange_{};
    FanOut fan_out_{};
};

}  // namespace

// Of the driver and of the rest of the module.
extern "C" hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned, unsigned, unsigned,
                                            unsigned, unsigned, unsigned, unsigned, hipStream_t,
                                            void** arguments, void**)
{
    if (device.refuses_launch) return hipErrorUnknown;
    device.plain++;
    if (is_fan_out(function))
        run(*static_cast<const FanOut*>(arguments[0]));
    else
        run(*static_cast<const Exchange*>(arguments[0]));
    return hipSuccess;
}
extern "C" const char* hipGetErrorString(hipError_t) { return "refused"; }
extern "C" hipError_t hipGetLastError() { return hipSuccess; }

namespace hier::gpu {
const char* const platform_name = "fake";
void report(int, const char*, ...) {}
std::unique_ptr<PreparedKernel> make_prepared_kernel()
{
    return device.has_prepared ? std::make_unique<FakeKernel>() : nullptr;
}
}  // namespace hier::gpu

namespace {

unsigned char memory[1024];
std::uint64_t words[8];

Exchange exchange_of(unsigned buffer, std::uint32_t flag, std::uint64_t done)
{
    Exchange e{};
    e.ranks = 2;
    e.bytes = 64;
    e.block = memory + buffer;
    e.into[0] = e.into[1] = memory + 512 + buffer;
    e.flag = flag;
    e.is_next = 1;
    e.done = words;
    e.done_value = done;
    return e;
}

FanOut fan_out_of(unsigned buffer, std::uint64_t first, std::uint64_t second, std::uint64_t done)
{
    FanOut f{};
    f.blocks = 1;
    f.block[0] = {memory + buffer, 64, 0, 0, 2};
    f.places = 2;
    f.to[0] = f.to[1] = memory + 512 + buffer;
    f.signals = 2;
    f.signal[0] = {words, first};
    f.signal[1] = {words + 1, second};
    f.done = words + 2;
    f.done_value = done;
    return f;
}

// What the program has launched, and whether every kernel used the values of its launch.
class Launches {
public:
    void add(hipError_t error, bool is_right)
    {
        launches_++;
        errors_ += error == hipSuccess ? 0 : 1;
        wrong_ += error == hipSuccess && !device.is_late && !is_right ? 1 : 0;
    }
    std::string used(unsigned prepared) const
    {
        if (wrong_ > 0) return std::to_string(wrong_) + " kernels use other values";
        if (device.plain + device.prepared + errors_ != launches_) return "a launch is missing";
        return device.prepared == prepared ? "" : std::to_string(device.prepared) + " prepared";
    }
    unsigned errors() const { return errors_; }

private:
    unsigned launches_ = 0, wrong_ = 0, errors_ = 0;
};

// Several calls, whose values are always the next ones.
class Exchanges : public Launches {
public:
    void call(unsigned buffer, bool is_next = true, unsigned zone = 0)
    {
        Exchange e = exchange_of(buffer, ++flags_[zone], done_ + 1);
        e.zone = words + zone;
        e.is_next = is_next ? 1 : 0;
        const hipError_t error = repeats_.launch({}, nullptr, e);
        if (error == hipSuccess) done_++;
        add(error, device.used == Values{flags_[zone], done_});
    }
    // `turns` of so many calls one after the other.
    void turns(unsigned turns, unsigned calls)
    {
        for (unsigned i = 0; i < turns * calls; i++) call(i % calls);
    }
    void skip_flags(std::uint32_t flags) { flags_[0] += flags; }
    void skip_ends(std::uint64_t ends) { done_ += ends; }
    void lose_context() { repeats_.abandon(); }
    void close() { repeats_.close(); }

private:
    Repeats<Exchange> repeats_;
    std::uint32_t flags_[2] = {};
    std::uint64_t done_ = 0;
};

class FanOuts : public Launches {
public:
    FanOuts() { repeats_.values().open(places_); }
    void call(unsigned buffer, std::uint64_t first, std::uint64_t second, std::uint64_t done,
              bool has_end = true)
    {
        FanOut f = fan_out_of(buffer, first, second, done);
        if (!has_end) f.done = nullptr;
        const hipError_t error = repeats_.launch({fan_out}, nullptr, f);
        add(error, device.used == Values{first, done} && device.used_second == second);
    }
    void lose_places() { repeats_.values().close(); }

private:
    Repeats<FanOut> repeats_;
    FanOutValues::Places places_{};
};

}  // namespace
