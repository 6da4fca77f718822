// SPDX-License-Identifier: BSD-3-Clause
// The rules of gdr: when the network may reach device memory itself, which keys are to be trusted,
// and which bytes have arrived.
#include <string>
#include <vector>

#include "hier/hier.h"
#include "net/devices/network_choice.hpp"
#include "net/ucx/device/arrival_flush.hpp"
#include "net/ucx/device/device_keys.hpp"
#include "net/ucx/device/gdr.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;

bool has(const std::string& text, const char* words)
{
    return text.find(words) != std::string::npos;
}

constexpr GdrFacts good{"ROCm", "rc,dc", true, true, 116};

GdrFacts without(bool GdrFacts::*fact)
{
    GdrFacts facts = good;
    facts.*fact = false;
    return facts;
}

void test_auto(void**)
{
    GdrFacts old = good;
    old.ucx_version = 115;
    assert_true(why_not_gdr(HIER_GPU_DIRECT_AUTO, good).empty());
    assert_true(
        has(why_not_gdr(HIER_GPU_DIRECT_AUTO, without(&GdrFacts::is_known)), "does not know ROCm"));
    assert_true(has(why_not_gdr(HIER_GPU_DIRECT_AUTO, without(&GdrFacts::is_rdma)), "is no RDMA"));
    assert_true(has(why_not_gdr(HIER_GPU_DIRECT_AUTO, old), "UCX 1.15 is older than 1.16"));
}

void test_on_and_off(void**)
{
    GdrFacts poor = without(&GdrFacts::is_rdma);
    poor.ucx_version = 113;
    assert_true(why_not_gdr(HIER_GPU_DIRECT_ON, poor).empty());
    assert_false(why_not_gdr(HIER_GPU_DIRECT_ON, without(&GdrFacts::is_known)).empty());
    assert_true(has(why_not_gdr(HIER_GPU_DIRECT_OFF, good), "coll_hier_gpu_direct is off"));
}

void test_rdma(void**)
{
    for (const char* all : {"rc,dc", "rc", "rc_mlx5,dc_mlx5"}) assert_true(is_rdma({"", all}));
    for (const char* not_all : {"", "tcp", "rc,tcp", "sm,rc", "record"})
        assert_false(is_rdma({"", not_all}));
}

std::vector<std::byte> key(unsigned domains, unsigned content)
{
    std::vector<std::byte> out(12);
    out[0] = static_cast<std::byte>(domains);
    out[9] = static_cast<std::byte>(content);
    return out;
}

// The network device has registered the board. Memory that it cannot register lacks the bit of the
// device.
void test_who_has_registered(void**)
{
    assert_true(is_registered_as(key(1, 0), key(1, 7)));
    assert_true(is_registered_as(key(1, 0), key(3, 7)));  // a GPU has registered the memory, too
    assert_true(is_registered_as(key(0, 0), key(0, 7)));  // TCP registers nothing
    assert_false(is_registered_as(key(1, 0), key(0, 7)));
    assert_false(is_registered_as(key(1, 0), key(2, 7)));
}

Allocation memory(std::uintptr_t base, std::size_t length, std::uint64_t id)
{
    return {MemoryKind::device, 0, reinterpret_cast<std::byte*>(base), length, id};
}

void test_stale_keys(void**)
{
    DeviceKeys keys;
    assert_true(keys.take(memory(0x1000, 0x1000, 1), key(1, 1)));
    assert_true(keys.take(memory(0x1000, 0x1000, 1), key(1, 1)));
    assert_true(keys.take(memory(0x1000, 0x1000, 1), key(1, 2)));   // another part of the memory
    assert_false(keys.take(memory(0x1000, 0x1000, 2), key(1, 1)));  // freed and allocated again
    assert_false(keys.take(memory(0x800, 0x900, 3), key(1, 2)));
    assert_true(keys.take(memory(0x1000, 0x1000, 2), key(1, 3)));
    assert_true(keys.take(memory(0x2000, 0x1000, 4), key(1, 1)));  // another address
}

void test_refused_until_freed(void**)
{
    DeviceKeys keys;
    keys.refuse(memory(0x1000, 0x1000, 1));
    assert_true(keys.is_refused(memory(0x1000, 0x1000, 1)));
    assert_false(keys.is_refused(memory(0x1000, 0x1000, 2)));
    for (std::uint64_t i = 2; i < 2 + DeviceKeys::max_kept; i++)
        keys.refuse(memory(0x1000, 0x1000, i));
    assert_false(keys.is_refused(memory(0x1000, 0x1000, 1)));  // forgotten, so UCX is asked again
    assert_true(keys.is_refused(memory(0x1000, 0x1000, 3)));
}

// A flush does not cover bytes that land while it is running.
void test_counts_lag_behind_the_flush(void**)
{
    ArrivalFlush flush(2);
    flush.begin();
    flush.land(0, 2);
    assert_true(flush.is_idle());
    assert_int_equal(flush.visible(0), 0);
    flush.start();
    flush.land(0, 5);
    flush.land(1, 1);
    assert_false(flush.is_idle());
    assert_int_equal(flush.visible(0), 0);
    flush.done();
    assert_int_equal(flush.visible(0), 2);
    assert_int_equal(flush.visible(1), 0);
    flush.start();
    flush.repeat();
    assert_int_equal(flush.visible(0), 2);
    flush.start();
    flush.done();
    assert_int_equal(flush.visible(1), 1);
    assert_int_equal(flush.visible(0), 5);
    flush.begin();
    assert_int_equal(flush.visible(0), 0);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_on_and_off),
        cmocka_unit_test(test_rdma),
        cmocka_unit_test(test_who_has_registered),
        cmocka_unit_test(test_stale_keys),
        cmocka_unit_test(test_refused_until_freed),
        cmocka_unit_test(test_counts_lag_behind_the_flush),
    };
    return hier::test::run_cases(argc, argv, "gdr", tests);
}
