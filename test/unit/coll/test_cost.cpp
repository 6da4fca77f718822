// SPDX-License-Identifier: BSD-3-Clause
// The cost model's choice of route and chunk against the best that the simulator finds.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "coll/allgather/cost.hpp"
#include "tools/simulator/algorithms.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace bench::simulator;
using namespace hier::test;
using hier::AllgatherCost;
using hier::Choice;
using hier::Route;

constexpr std::size_t kilo = 1 << 10, mega = 1 << 20;

struct Case {
    std::string name;
    Machine machine;
};

Case device(const std::string& name, double nic_rate, int streams)
{
    Case c{name, {}};
    c.machine.nic_rate = nic_rate;
    c.machine.streams = streams;
    c.machine.launch = 7e-6;
    c.machine.kernel_gap = 4.1e-6;
    return c;
}

Case host(const std::string& name, double nic_rate, int nics, double nic_latency)
{
    Case c{name, {}};
    c.machine.is_host = true;
    c.machine.link_latency = 1e-6;
    c.machine.nic_rate = nic_rate;
    c.machine.nics = nics;
    c.machine.nic_latency = nic_latency;
    return c;
}

std::vector<Case> cases()
{
    std::vector<Case> all = {
        device("400 Gbit/s", 50e9, 1),
        device("400 Gbit/s, two streams", 50e9, 2),
        device("100 Gbit/s", 12.5e9, 1),
        device("no network to speak of", 1e9, 1),
        host("1 Gbit/s, TCP", 119.2e6, 1, 15e-6),
        host("host, 200 Gbit/s a node", 25e9, 1, 5e-6),
        host("host, 100 Gbit/s a rank", 12.5e9, 0, 5e-6),
    };
    all.push_back(device("shared NIC", 50e9, 2));
    all.back().machine.nics = 2;
    all.push_back(device("staged", 25e9, 2));
    all.back().machine.stage_rate = 50e9;
    all.push_back(device("kernels", 50e9, 2));
    all.back().machine.fan_out = 256 * kilo;
    all.push_back(device("kernels, staged", 25e9, 2));
    all.back().machine.stage_rate = 50e9;
    all.back().machine.fan_out = 256 * kilo;
    return all;
}

std::vector<std::size_t> chunks(std::size_t bytes)
{
    std::vector<std::size_t> sizes;
    const std::size_t least = std::max<std::size_t>(16 * kilo, bytes / 64);
    for (std::size_t chunk = bytes; chunk >= least; chunk /= 2) sizes.push_back(chunk);
    return sizes;
}

std::string text_of(const Choice& choice)
{
    return std::string(to_string(choice.route)) + " of " + std::to_string(choice.chunk) +
           ", depth " + std::to_string(choice.depth);
}

std::string judge(const Case& c, const std::vector<int>& layout, std::size_t bytes)
{
    Options options;
    options.layout = layout;
    options.machine = c.machine;
    const auto topology = make_topology(layout);
    Machine machine = c.machine;
    machine.lanes = lanes_of(machine, layout);
    const Choice choice = AllgatherCost(topology, rates_of(machine)).choose(bytes);
    const double chosen = run_hier(topology, options, bytes, choice).seconds;
    double best = chosen;
    std::string better;
    for (const Route route : {Route::direct, Route::ring}) {
        for (const std::size_t chunk : chunks(bytes)) {
            for (const int depth : {2, 4, 16}) {
                const double seconds =
                    run_hier(topology, options, bytes, {route, chunk, depth, choice.own_whole})
                        .seconds;
                if (seconds >= best) continue;
                best = seconds;
                better = text_of({route, chunk, depth});
            }
        }
    }
    // Where nodes are uneven, direct puts meet at ports in an order that the formula does not know.
    const double limit = is_even(layout) ? 1.08 : 1.20;
    if (chosen <= best * limit) return "";
    std::string shape;
    for (const int ranks : layout) shape += std::to_string(ranks) + " ";
    return c.name + ", nodes of " + shape + ", " + std::to_string(bytes) +
           " bytes: " + std::to_string(chosen * 1e6) + " us with " + text_of(choice) +
           ", predicted " + std::to_string(choice.seconds * 1e6) + "; " +
           std::to_string(best * 1e6) + " us with " + better;
}

const char* choices_are_good()
{
    const std::vector<std::vector<int>> layouts = {
        {8},
        {1, 1},
        {4, 4},
        {2, 2, 2, 2},
        std::vector<int>(8, 8),
        std::vector<int>(32, 4),
        {3, 1},
        {4, 2, 1},
        {5, 3, 3, 3},
    };
    std::string all;
    for (const Case& c : cases()) {
        for (const auto& layout : layouts) {
            for (const std::size_t bytes : {64 * kilo, mega, 8 * mega}) {
                const std::string wrong = judge(c, layout, bytes);
                if (wrong.empty()) continue;
                std::printf("%s\n", wrong.c_str());
                all = wrong;
            }
        }
    }
    return keep(all);
}

void test_choice(void**) { expect_no_reason(choices_are_good()); }

// ---- own shards whole

bool is_whole(const std::vector<int>& layout, const Machine& machine, std::size_t bytes)
{
    return AllgatherCost(make_topology(layout), rates_of(machine)).choose(bytes).own_whole;
}

// Not whole: a core serves the network in between, and on uneven nodes ranks meet at ports.
void test_own_shards_are_whole_where_engines_copy(void**)
{
    assert_true(is_whole({8, 8}, Machine(), mega));
    assert_false(is_whole({8, 8}, host("host", 25e9, 1, 5e-6).machine, mega));
    Machine staged;
    staged.stage_rate = 50e9;
    assert_true(is_whole({8, 8}, staged, mega));
    assert_false(is_whole({8, 4}, Machine(), mega));
}

std::string judge_whole(const Case& c, const std::vector<int>& layout, std::size_t chunk)
{
    Options options;
    options.layout = layout;
    options.machine = c.machine;
    const auto topology = make_topology(layout);
    const auto seconds = [&](bool own_whole) {
        return run_hier(topology, options, mega, {Route::direct, chunk, 2, own_whole}).seconds;
    };
    // A whole shard may be too large for a kernel, and its parts not. Then the shard meets the kernels of
    // chunks at the ports. (2 nodes of 8, chunks of 128 KiB: 80 and 75 us. The model chooses larger ones.)
    const double limit = c.machine.fan_out > 0 ? 1.07 : 1.001;
    if (seconds(true) <= seconds(false) * limit) return "";
    return c.name + ", nodes of " + std::to_string(layout[0]) + ", chunks of " +
           std::to_string(chunk) + ": " + std::to_string(seconds(true) * 1e6) + " us, cut " +
           std::to_string(seconds(false) * 1e6);
}

const char* whole_own_shards_are_never_slower()
{
    for (const Case& c : cases()) {
        if (c.machine.is_host) continue;
        for (const auto& layout : {std::vector<int>{8, 8}, {4, 4, 4}, {2, 2, 2, 2}}) {
            for (const std::size_t chunk : chunks(mega)) {
                const std::string wrong = judge_whole(c, layout, chunk);
                if (!wrong.empty()) return keep(wrong);
            }
        }
    }
    return nullptr;
}

void test_whole_own_shards(void**) { expect_no_reason(whole_own_shards_are_never_slower()); }

// ---- chunks that kernels push

const char* kernels_are_predicted()
{
    std::string wrong;
    for (const int nodes : {2, 4, 16}) {
        Options options;
        options.layout = std::vector<int>(static_cast<std::size_t>(nodes), 8);
        options.machine = device("kernels", 50e9, 2).machine;
        options.machine.fan_out = 256 * kilo;
        const auto topology = make_topology(options.layout);
        const AllgatherCost cost(topology, rates_of(options.machine));
        for (const std::size_t bytes : {64 * kilo, 128 * kilo, 256 * kilo}) {
            const Choice choice = cost.predict(bytes, Route::direct, bytes, 4);
            const double seconds = run_hier(topology, options, bytes, choice).seconds;
            if (std::abs(choice.seconds / seconds - 1) > 0.1)
                wrong += std::to_string(nodes) + " nodes, " + std::to_string(bytes) +
                         " bytes: predicted " + std::to_string(choice.seconds * 1e6) +
                         " us, simulated " + std::to_string(seconds * 1e6) + "; ";
        }
    }
    return keep(wrong);
}

void test_kernels(void**) { expect_no_reason(kernels_are_predicted()); }

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_own_shards_are_whole_where_engines_copy),
        cmocka_unit_test(test_whole_own_shards),
        cmocka_unit_test(test_kernels),
    };
    return hier::test::run_cases(argc, argv, "cost", tests);
}
