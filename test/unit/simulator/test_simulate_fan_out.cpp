// SPDX-License-Identifier: BSD-3-Clause
// The simulator of bench/simulate: blocks that a kernel pushes to all of a node, with times by hand.
#include <algorithm>
#include <string>
#include <vector>

#include "coll/common/plan_writer.hpp"
#include "tools/simulator/algorithms.hpp"

#include "test/support/cmocka.hpp"
#include "test/support/simulated_times.hpp"

namespace {

using namespace bench::simulator;
using namespace hier::test;
using hier::Extent;
using hier::Level;
using hier::PlanWriter;
using hier::Route;

constexpr std::size_t block = 64 << 10;

// A put between two ranks of a node of four.
struct Put {
    int from, to;
    Extent what;
};

Machine kernels_for(std::size_t bytes)
{
    Machine m = even(1, 4).machine;
    m.fan_out = bytes;
    return m;
}

double seconds_of(const Machine& machine, const std::vector<Put>& puts)
{
    return simulate(make_topology({4}), machine, Symmetry::none,
                    [&](int rank) {
                        PlanWriter writer(rank, {{}, true, nullptr}, 2);
                        std::uint32_t came[4] = {};
                        for (const Put& put : puts) {
                            if (put.from == rank) writer.put(Level::node, put.to, put.what, false);
                            if (put.to == rank) came[put.from]++;
                        }
                        for (int from = 0; from < 4; from++)
                            if (came[from] > 0) writer.await_data(Level::node, from, came[from]);
                        return std::move(writer).take();
                    })
        .seconds;
}

// Seconds of n blocks through a port.
double through(const Machine& m, double n) { return n * block / m.link_rate; }

// l: latency, i: issue. Copies run one by one.
const char* a_block_has_one_start()
{
    const std::vector<Put> puts = {{0, 1, {0, block}}, {0, 2, {0, block}}, {0, 3, {0, block}}};
    const Machine m = kernels_for(block), copies = kernels_for(block - 1);
    const double start = m.copy_issue + m.link_latency;
    std::string wrong = differs("kernel", seconds_of(m, puts), start + through(m, 3));
    wrong += differs("copies", seconds_of(copies, puts),
                     m.copy_issue + std::max(3 * m.link_latency + through(m, 3),
                                             2 * m.copy_issue + m.link_latency + through(m, 1)));
    return keep(wrong);
}

// Rank 0 pushes so many blocks to all others.
std::vector<Put> puts_of(std::size_t blocks)
{
    std::vector<Put> puts;
    for (std::size_t i = 0; i < blocks; i++)
        for (const int to : {1, 2, 3}) puts.push_back({0, to, {i * block, block}});
    return puts;
}

// Blocks that wait share a kernel. What does not fit has a kernel behind the first one.
const char* blocks_share_a_kernel()
{
    Machine m = kernels_for(block);
    m.launch = 3e-6;
    m.kernel_gap = 4e-6;
    const double start = m.copy_issue + m.launch;
    std::string wrong = differs("16 blocks", seconds_of(m, puts_of(16)),
                                start + m.link_latency + through(m, 3 * 16));
    wrong += differs("17 blocks", seconds_of(m, puts_of(17)),
                     start + 2 * m.link_latency + m.kernel_gap + through(m, 3 * 17));
    return keep(wrong);
}

// A single put is a copy, which runs beside the kernel of another block.
const char* a_single_put_is_a_copy()
{
    const std::vector<Put> puts = {{0, 1, {0, block}}, {0, 2, {block, block}}};
    const Machine m = kernels_for(block);
    return keep(differs("two single ones", seconds_of(m, puts), seconds_of(kernels_for(0), puts)));
}

// The port of one receiver is taken by a copy, so the kernel ends later.
const char* receivers_share_their_ports()
{
    const Extent large = {block, 16 * block};
    const std::vector<Put> puts = {{3, 1, large}, {0, 1, {0, block}}, {0, 2, {0, block}}};
    const Machine m = kernels_for(block);
    return keep(differs("a port in use", seconds_of(m, puts),
                        m.copy_issue + through(m, 16 + 1) + m.link_latency));
}

// All ranks push at the same time, and no port has more to do than its bytes.
const char* ports_are_full()
{
    std::vector<Put> puts;
    for (int from = 0; from < 4; from++)
        for (int i = 1; i < 4; i++)
            puts.push_back({from, (from + i) % 4, {static_cast<std::size_t>(from) * block, block}});
    const Machine m = kernels_for(block);
    return keep(differs("all", seconds_of(m, puts), m.copy_issue + m.link_latency + through(m, 3)));
}

void test_kernels(void**)
{
    expect_no_reason(a_block_has_one_start());
    expect_no_reason(blocks_share_a_kernel());
    expect_no_reason(a_single_put_is_a_copy());
    expect_no_reason(receivers_share_their_ports());
    expect_no_reason(ports_are_full());
}

// A chunk comes from the network, and one kernel pushes it on.
const char* arrived_chunks()
{
    Options options = even(2, 3);
    options.is_in_place = true;
    options.machine.fan_out = block;
    const Machine& m = options.machine;
    const double arrival = 2 * m.nic_latency + block / m.nic_rate;
    const double push = m.copy_issue + m.link_latency + through(m, 2);
    std::string wrong =
        differs("arrived", hier::test::seconds_of(options, block, Route::direct, block),
                std::max(arrival, m.link_latency + push) + std::max(push, m.nic_latency));
    return keep(wrong);
}

// One node in place of all gives the same time.
const char* one_node_stands_for_all()
{
    std::string wrong;
    for (const Route route : {Route::direct, Route::ring, Route::bundles}) {
        Options options = even(4, 4);
        options.machine.fan_out = 4 * block;
        const double one = hier::test::seconds_of(options, 4 * block, route, block);
        options.is_full = true;
        wrong += differs(to_string(route), hier::test::seconds_of(options, 4 * block, route, block),
                         one);
    }
    return keep(wrong);
}

// The own blocks share the first kernel. It has ended when the first chunk comes, which has the second
// one. The next chunk has the third one. All others have come when the second one has ended.
const char* two_kernels_are_on_their_way()
{
    Options options = even(2, 3);
    options.is_in_place = true;
    options.machine.fan_out = block;
    options.machine.nic_rate = block / 1e-6;
    options.machine.kernel_gap = 50e-6;
    const Machine& m = options.machine;
    std::string wrong;
    for (const std::size_t chunks : {4, 6, 8}) {
        const double pushed = 2 * 2 * static_cast<double>(chunks);
        wrong += differs(std::to_string(chunks),
                         hier::test::seconds_of(options, chunks * block, Route::direct, block),
                         m.link_latency + m.copy_issue + 4 * m.link_latency + 3 * m.kernel_gap +
                             through(m, pushed));
    }
    return keep(wrong);
}

void test_arrived(void**)
{
    expect_no_reason(arrived_chunks());
    expect_no_reason(two_kernels_are_on_their_way());
}
void test_symmetry(void**) { expect_no_reason(one_node_stands_for_all()); }

std::size_t fan_out_of(const std::vector<std::string>& arguments)
{
    Options options;
    return parse_options(arguments, options).empty() ? options.machine.fan_out : 1;
}

void test_option(void**)
{
    assert_int_equal(fan_out_of({}), 256 << 10);
    assert_int_equal(fan_out_of({"--gpus", "4"}), 128 << 10);
    assert_int_equal(fan_out_of({"--layout", "2,4"}), 128 << 10);
    assert_int_equal(fan_out_of({"--nodes", "1"}), 0);
    assert_int_equal(fan_out_of({"--host"}), 0);
    assert_int_equal(fan_out_of({"--fan-out", "0"}), 0);
    assert_int_equal(fan_out_of({"--nodes", "1", "--fan-out", "2m"}), 2 << 20);
    assert_int_equal(fan_out_of({"--fan-out", "much"}), 1);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_arrived),
        cmocka_unit_test(test_symmetry),
        cmocka_unit_test(test_option),
    };
    return hier::test::run_cases(argc, argv, "simulate_fan_out", tests);
}
