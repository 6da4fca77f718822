// SPDX-License-Identifier: BSD-3-Clause
// Launches that repeat an earlier one: which of them go by a prepared kernel, and that every kernel uses
// the values that its launch asks for. The device is a fake that counts launches as the kernels do.
#include "gpu/common/repeats.hpp"

#include <set>
#include <string>

#include "gpu/common/report.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier::gpu;
using namespace hier::test;

// What the last kernel has used, and how the fake answers.
struct Device {
    LaunchValues used;
    unsigned plain = 0, prepared = 0, sets = 0, destroyed = 0;
    bool has_prepared = true, refuses_set = false, refuses_start = false, refuses_launch = false;
    std::uint64_t launches[Repeat::slots] = {};
} device;

template <class Arguments> void run(const Arguments& a)
{
    std::uint64_t& count = device.launches[a.repeat.slot];
    const std::uint64_t before = a.repeat.is_repeated != 0 ? count : 0;
    count = before + 1;
    device.used = values_of(a);
    device.used.call += before * a.repeat.step;
    device.used.done += before * a.repeat.done_step;
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
    e.done = words;
    e.done_value = done;
    return e;
}

// A program of several calls that are launched in turns, and what each one must use.
class Program {
public:
    void call(unsigned buffer, std::uint32_t flag, std::uint64_t done)
    {
        Exchange e = exchange_of(buffer, flag, done);
        const hipError_t error = repeats_.launch({}, nullptr, e);
        const LaunchValues wanted{flag, done};
        if (error == hipSuccess && !(device.used == wanted)) wrong_++;
        errors_ += error == hipSuccess ? 0 : 1;
        calls_++;
    }
    // `turns` of so many calls one after the other. Values grow by one.
    void turns(unsigned turns, unsigned calls)
    {
        for (unsigned i = 0; i < turns * calls; i++) {
            value_++;
            call(i % calls, static_cast<std::uint32_t>(value_), 1000 + value_);
        }
    }
    void advance(std::uint64_t values) { value_ += values; }
    std::string used(unsigned prepared) const
    {
        if (wrong_ > 0) return std::to_string(wrong_) + " kernels use other values";
        if (device.plain + device.prepared + errors_ != calls_) return "a call is missing";
        return device.prepared == prepared ? "" : std::to_string(device.prepared) + " prepared";
    }
    unsigned errors() const { return errors_; }
    void lose_context() { repeats_.abandon(); }
    void close() { repeats_.close(); }

private:
    Repeats<Exchange> repeats_{0};
    std::uint64_t value_ = 0;
    unsigned calls_ = 0, wrong_ = 0, errors_ = 0;
};

int renew(void**)
{
    device = {};
    return 0;
}

// The first two launches tell the step.
void test_one_call(void**)
{
    Program program;
    program.turns(10, 1);
    expect_no_reason(keep(program.used(8)));
    assert_int_equal(device.sets, 1);
}

void test_several_calls_in_turns(void**)
{
    Program program;
    program.turns(10, 5);
    expect_no_reason(keep(program.used(5 * 8)));
    assert_int_equal(device.sets, 5);
}

// More than are known: the one that comes next is always the one that has been dropped.
void test_too_many_calls(void**)
{
    Program program;
    program.turns(10, Repeats<Exchange>::calls + 1);
    expect_no_reason(keep(program.used(0)));
}

void test_another_step(void**)
{
    Program program;
    program.turns(5, 1);  // 3 prepared
    program.advance(7);
    program.turns(5, 1);  // the step of 8 once, twice that of 1, then 3 prepared
    expect_no_reason(keep(program.used(6)));
    program.turns(4, 2);  // the first call once with its old step, then each of the two twice
    expect_no_reason(keep(program.used(6 + 1 + 2 + 2)));
}

// Only one of the two values keeps its step.
void test_both_values_count(void**)
{
    Program program;
    for (std::uint32_t i = 1; i < 10; i++) program.call(0, i, i * i);
    for (std::uint32_t i = 10; i < 20; i++) program.call(0, i * i, i);
    expect_no_reason(keep(program.used(0)));
}

void test_flag_that_wraps(void**)
{
    Program program;
    for (std::uint32_t i = 0; i < 10; i++) program.call(0, 0xFFFFFFFCU + i, i);
    expect_no_reason(keep(program.used(2 + 4)));
}

void test_no_prepared_kernels(void**)
{
    device.has_prepared = false;
    Program program;
    program.turns(10, 1);
    expect_no_reason(keep(program.used(0)));
}

// Each attempt costs time. So there are a few, and all calls are launched nevertheless.
void test_refusals(void**)
{
    for (const bool at_start : {false, true}) {
        device = {};
        (at_start ? device.refuses_start : device.refuses_set) = true;
        Program program;
        program.turns(100, 1);
        expect_no_reason(keep(program.used(0)));
        assert_in_range(device.sets, 1, 10);
    }
}

void test_refused_once(void**)
{
    Program program;
    program.turns(5, 1);
    device.refuses_start = true;
    program.turns(1, 1);
    device.refuses_start = false;
    program.turns(5, 1);
    expect_no_reason(keep(program.used(3 + 5)));
}

void test_launch_that_fails(void**)
{
    device.refuses_launch = true;
    Program program;
    program.turns(3, 1);
    assert_int_equal(program.errors(), 3);
    device.refuses_launch = false;
    program.turns(10, 1);
    expect_no_reason(keep(program.used(8)));
}

void test_lost_context(void**)
{
    Program program;
    program.turns(5, 1);
    program.lose_context();
    assert_int_equal(device.destroyed, 0);
    program.turns(5, 1);
    expect_no_reason(keep(program.used(6)));
    program.close();
    assert_int_equal(device.destroyed, 1);
    // That of the lost context is never destroyed.
    assert_int_equal(alive.size(), 1);
    delete *alive.begin();
}

// Every field but the values tells calls apart.
void test_calls_that_differ(void**)
{
    const Exchange e = exchange_of(0, 1, 1);
    assert_true(is_same_call(e, exchange_of(0, 2, 3)));
    const auto differs = [&](auto change) {
        Exchange other = e;
        change(other);
        return !is_same_call(e, other);
    };
    assert_true(differs([](Exchange& o) { o.rank = 1; }));
    assert_true(differs([](Exchange& o) { o.ranks = 3; }));
    assert_true(differs([](Exchange& o) { o.bytes = 8; }));
    assert_true(differs([](Exchange& o) { o.stride = 2; }));
    assert_true(differs([](Exchange& o) { o.block = memory + 1; }));
    assert_true(differs([](Exchange& o) { o.zone = words; }));
    assert_true(
        differs([](Exchange& o) { o.control = reinterpret_cast<Exchange::Control*>(words); }));
    assert_true(
        differs([](Exchange& o) { o.stop = reinterpret_cast<const std::uint32_t*>(words); }));
    assert_true(differs([](Exchange& o) { o.done = nullptr; }));
    assert_true(differs([](Exchange& o) { o.to[1] = words; }));
    assert_true(differs([](Exchange& o) { o.into[1] = memory; }));
    assert_false(differs([](Exchange& o) { o.into[2] = memory; }));
}

FanOut fan_out_of(std::uint64_t first, std::uint64_t second, std::uint64_t done)
{
    FanOut f{};
    f.blocks = 1;
    f.block[0] = {memory, 64, 0, 0, 2};
    f.places = 2;
    f.to[0] = f.to[1] = memory + 512;
    f.signals = 2;
    f.signal[0] = {words, first};
    f.signal[1] = {words + 1, second};
    f.done = words + 2;
    f.done_value = done;
    return f;
}

// One step is of all signals.
void test_fan_outs(void**)
{
    Repeats<FanOut> repeats(Repeats<Exchange>::calls);
    unsigned wrong = 0;
    const auto call = [&](std::uint64_t first, std::uint64_t second, std::uint64_t done) {
        FanOut f = fan_out_of(first, second, done);
        const hipError_t error = repeats.launch({fan_out}, nullptr, f);
        if (error != hipSuccess || !(device.used == LaunchValues{first, done})) wrong++;
    };
    for (std::uint64_t i = 1; i <= 10; i++) call(i << 16, (i << 16) + 5, i);
    assert_int_equal(wrong, 0);
    assert_int_equal(device.prepared, 8);
    for (std::uint64_t i = 11; i <= 20; i++) call(i << 16, i << 17, i);
    assert_int_equal(wrong, 0);
    assert_int_equal(device.prepared, 8);
}

void test_fan_outs_that_differ(void**)
{
    const FanOut f = fan_out_of(10, 20, 1);
    assert_true(is_same_call(f, fan_out_of(11, 21, 5)));
    assert_false(is_same_call(f, fan_out_of(11, 22, 5)));
    const auto differs = [&](auto change) {
        FanOut other = f;
        change(other);
        return !is_same_call(f, other);
    };
    assert_true(differs([](FanOut& o) { o.blocks = 2; }));
    assert_true(differs([](FanOut& o) { o.block[0].from = memory + 1; }));
    assert_true(differs([](FanOut& o) { o.block[0].bytes = 8; }));
    assert_true(differs([](FanOut& o) { o.block[0].is_narrow = 1; }));
    assert_true(differs([](FanOut& o) { o.block[0].first = 1; }));
    assert_true(differs([](FanOut& o) { o.block[0].places = 1; }));
    assert_false(differs([](FanOut& o) { o.block[1].bytes = 8; }));
    assert_true(differs([](FanOut& o) { o.places = 1; }));
    assert_true(differs([](FanOut& o) { o.to[1] = memory; }));
    assert_true(differs([](FanOut& o) { o.signals = 1; }));
    assert_true(differs([](FanOut& o) { o.signal[1].at = words; }));
    assert_true(differs([](FanOut& o) { o.done = nullptr; }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_one_call, renew),
        cmocka_unit_test_setup(test_several_calls_in_turns, renew),
        cmocka_unit_test_setup(test_too_many_calls, renew),
        cmocka_unit_test_setup(test_another_step, renew),
        cmocka_unit_test_setup(test_both_values_count, renew),
        cmocka_unit_test_setup(test_flag_that_wraps, renew),
        cmocka_unit_test_setup(test_no_prepared_kernels, renew),
        cmocka_unit_test_setup(test_refusals, renew),
        cmocka_unit_test_setup(test_refused_once, renew),
        cmocka_unit_test_setup(test_launch_that_fails, renew),
        cmocka_unit_test_setup(test_lost_context, renew),
        cmocka_unit_test(test_calls_that_differ),
        cmocka_unit_test_setup(test_fan_outs, renew),
        cmocka_unit_test(test_fan_outs_that_differ),
    };
    return run_cases(argc, argv, "repeated launches", tests);
}
