// SPDX-License-Identifier: BSD-3-Clause
// Launches that repeat an earlier one: which of them go by a prepared kernel, and that every kernel uses
// the values that its launch asks for. The device is a fake that counts and adds as the kernels do. A
// kernel that is late finds its values when the test ends it.
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

int renew(void**)
{
    device = {};
    for (std::uint64_t& word : words) word = 0;
    return 0;
}

void test_one_call(void**)
{
    Exchanges program;
    program.turns(10, 1);
    expect_no_reason(keep(program.used(8)));
    assert_int_equal(device.sets, 1);
}

void test_several_calls_in_turns(void**)
{
    Exchanges program;
    program.turns(10, 5);
    expect_no_reason(keep(program.used(5 * 8)));
    assert_int_equal(device.sets, 5);
}

void test_calls_in_any_order(void**)
{
    Exchanges program;
    for (unsigned i = 0; i < 100; i++) program.call(i * i % 7 % 3);
    expect_no_reason(keep(program.used(100 - 2 * 3)));
}

// More than are known: the one that comes next is always the one that has been dropped.
void test_too_many_calls(void**)
{
    Exchanges program;
    program.turns(10, known_calls);
    expect_no_reason(keep(program.used(8 * known_calls)));
    program.turns(10, known_calls + 1);
    expect_no_reason(keep(program.used(9 * known_calls)));
}

// Another zone, or a flag that has been left out.
void test_flag_that_is_not_the_next(void**)
{
    Exchanges program;
    program.turns(5, 2);
    program.skip_flags(7);
    program.call(1, false);
    program.turns(5, 2);
    expect_no_reason(keep(program.used(2 * 3 + 2 * 5)));
}

// Each zone has flags of its own. The values at the end are of all kernels.
void test_two_zones(void**)
{
    Exchanges program;
    for (unsigned i = 0; i < 20; i++) program.call(0, true, i % 2);
    expect_no_reason(keep(program.used(20 - 2 * 2)));
}

void test_end_that_is_not_the_next(void**)
{
    Exchanges program;
    program.turns(5, 1);
    program.skip_ends(3);
    program.turns(5, 1);
    expect_no_reason(keep(program.used(3 + 4)));
}

void test_no_prepared_kernels(void**)
{
    device.has_prepared = false;
    Exchanges program;
    program.turns(10, 1);
    expect_no_reason(keep(program.used(0)));
}

// Each attempt costs time. So there are a few, and all calls are launched nevertheless.
void test_refusals(void**)
{
    for (const bool at_start : {false, true}) {
        device = {};
        (at_start ? device.refuses_start : device.refuses_set) = true;
        Exchanges program;
        program.turns(100, 1);
        expect_no_reason(keep(program.used(0)));
        assert_in_range(device.sets, 1, 10);
    }
}

void test_refused_once(void**)
{
    Exchanges program;
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
    Exchanges program;
    program.turns(3, 1);
    assert_int_equal(program.errors(), 3);
    device.refuses_launch = false;
    program.turns(10, 1);
    expect_no_reason(keep(program.used(8)));
}

void test_lost_context(void**)
{
    Exchanges program;
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

// Values may take any steps, but those of all signals take the same.
void test_fan_outs(void**)
{
    FanOuts program;
    for (std::uint64_t i = 1; i <= 10; i++) program.call(0, i * i << 16, (i * i << 16) + 5, 3 * i);
    expect_no_reason(keep(program.used(8)));
    assert_int_equal(device.sets, 1);
    for (std::uint64_t i = 11; i <= 20; i++) program.call(0, i << 16, i << 17, 3 * i);
    expect_no_reason(keep(program.used(8)));
}

// A kernel that runs may not have read its place yet.
void test_last_kernel_still_runs(void**)
{
    FanOuts program;
    for (std::uint64_t i = 1; i <= 3; i++) program.call(0, i, i, i);
    device.is_late = true;
    program.call(0, 10, 10, 4);
    program.call(0, 11, 11, 5);
    expect_no_reason(keep(program.used(2)));
    device.running.front()();
    assert_true(device.used == (Values{10, 4}));
    device.end_all();
    assert_true(device.used == (Values{11, 5}));
    device.is_late = false;
    program.call(0, 12, 12, 6);
    expect_no_reason(keep(program.used(3)));
}

// The same of a place whose call has been dropped meanwhile.
void test_place_of_a_dropped_call(void**)
{
    FanOuts program;
    for (std::uint64_t i = 1; i <= 3; i++) program.call(0, i, i, i);
    device.is_late = true;
    program.call(0, 10, 10, 4);
    for (unsigned buffer = 1; buffer <= known_calls; buffer++) program.call(buffer, 20, 20, 5);
    // The last one has the place of the first one.
    for (std::uint64_t i = 0; i < 5; i++) program.call(known_calls, 30 + i, 30 + i, 6 + i);
    expect_no_reason(keep(program.used(2)));
    device.running.front()();
    assert_true(device.used == (Values{10, 4}));
    device.end_all();
}

// Nothing tells when a kernel has read its place, or there are no places.
void test_without_words_of_the_host(void**)
{
    FanOuts program;
    for (std::uint64_t i = 1; i <= 10; i++) program.call(0, i, i, i, false);
    program.lose_places();
    for (std::uint64_t i = 11; i <= 20; i++) program.call(0, i, i, i);
    expect_no_reason(keep(program.used(0)));
}

void test_fan_outs_that_differ(void**)
{
    const FanOut f = fan_out_of(0, 10, 20, 1);
    assert_true(is_same_call(f, fan_out_of(0, 11, 21, 5)));
    assert_false(is_same_call(f, fan_out_of(0, 11, 22, 5)));
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
        cmocka_unit_test_setup(test_calls_in_any_order, renew),
        cmocka_unit_test_setup(test_too_many_calls, renew),
        cmocka_unit_test_setup(test_flag_that_is_not_the_next, renew),
        cmocka_unit_test_setup(test_two_zones, renew),
        cmocka_unit_test_setup(test_end_that_is_not_the_next, renew),
        cmocka_unit_test_setup(test_no_prepared_kernels, renew),
        cmocka_unit_test_setup(test_refusals, renew),
        cmocka_unit_test_setup(test_refused_once, renew),
        cmocka_unit_test_setup(test_launch_that_fails, renew),
        cmocka_unit_test_setup(test_lost_context, renew),
        cmocka_unit_test(test_calls_that_differ),
        cmocka_unit_test_setup(test_fan_outs, renew),
        cmocka_unit_test_setup(test_last_kernel_still_runs, renew),
        cmocka_unit_test_setup(test_place_of_a_dropped_call, renew),
        cmocka_unit_test_setup(test_without_words_of_the_host, renew),
        cmocka_unit_test(test_fan_outs_that_differ),
    };
    return run_cases(argc, argv, "repeated launches", tests);
}
