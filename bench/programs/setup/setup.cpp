// SPDX-License-Identifier: BSD-3-Clause
// What it takes to set up a large team: messages, shared memory, connections, plans. Needs no MPI.
#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/lib/options/quantity.hpp"
#include "coll/registry.hpp"
#include "computed_world.hpp"
#include "shared_memory.hpp"
#include "stand_in_network.hpp"
#include "team/call_planner.hpp"
#include "team/setup.hpp"

namespace {

using namespace bench;

constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

constexpr const char* usage =
    "usage: setup [--sizes LIST] NODESxRANKS ...\n"
    "\n"
    "Makes a team of NODES nodes with RANKS ranks each. The ranks of the first node are threads "
    "of\n"
    "this process and run the real set-up. The messages of all other ranks are computed. The "
    "network\n"
    "between nodes is a stand-in: its ranks exchange addresses, but do not connect.\n"
    "\n"
    "  --sizes LIST   plans calls of so many bytes a rank (default: 64,4k,64k,1m)\n"
    "\n"
    "example: bench/setup 1024x8 64x128 8192x1\n";

struct Layout {
    int nodes, ranks;
};

// "1024x8"
std::optional<Layout> parse_layout(const std::string& text)
{
    const std::size_t x = text.find('x');
    if (x == std::string::npos) return std::nullopt;
    const auto nodes = parse_count(text.substr(0, x), 1, 1 << 20);
    const auto ranks = parse_count(text.substr(x + 1), 1, 1024);
    if (!nodes || !ranks || *nodes * *ranks > 1 << 20) return std::nullopt;
    return Layout{static_cast<int>(*nodes), static_cast<int>(*ranks)};
}

// Seconds of the CPU that this thread has had.
double cpu_seconds()
{
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::size_t heap_bytes()
{
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

struct Planned {
    std::size_t bytes;       // of a call
    double choose, prepare;  // seconds
    std::size_t ops, memory;
};

struct Made {
    hier::TeamSetup setup;
    double seconds = 0;  // of the CPU
    std::vector<Planned> planned;
    std::string fault;
};

void make_team(ComputedWorld& world, int rank, Made& made)
{
    try {
        const hier_bootstrap bootstrap = world.bootstrap(rank);
        const hier::Group all(bootstrap);
        hier_config config{};
        config.timeout = 20;
        config.eager_bytes = 8192;
        const double begin = cpu_seconds();
        all.agree("",
                  [&] { set_up_team(config, bootstrap, all, make_stand_in, made.setup, [] {}); });
        made.seconds = cpu_seconds() - begin;
    } catch (const std::exception& e) {
        made.fault = e.what();
    }
}

void plan_calls(Made& made, const std::vector<std::size_t>& sizes)
{
    hier::Tally tally;
    hier::CallPlanner planner(made.setup, 0, hier::shipped_collectives(), tally);
    for (const std::size_t bytes : sizes) {
        hier::Call call{};
        call.bytes = bytes;
        const double begin = cpu_seconds();
        const hier::Choice choice = planner.choose(call);
        const double chosen = cpu_seconds();
        const auto& prepared = planner.prepare({.collective = 0,
                                                .bytes = bytes,
                                                .stride = bytes,
                                                .in_place = false,
                                                .has_bounce = false,
                                                .is_on_device = false,
                                                .publish = choice.publish},
                                               choice);
        made.planned.push_back({bytes, chosen - begin, cpu_seconds() - chosen,
                                prepared.program->size(), prepared.program->bytes()});
    }
}

int measure(const Layout& layout, const std::vector<std::size_t>& sizes)
{
    ComputedWorld world(layout.nodes * layout.ranks, layout.ranks);
    std::vector<Made> made(static_cast<std::size_t>(layout.ranks));
    const std::size_t heap = heap_bytes();
    std::vector<std::thread> threads;
    for (int r = 0; r < layout.ranks; r++)
        threads.emplace_back([&, r] { make_team(world, r, made[static_cast<std::size_t>(r)]); });
    for (std::thread& thread : threads) thread.join();
    for (const Made& rank : made) {
        if (rank.fault.empty()) continue;
        std::fprintf(stderr, "setup: %s\n", rank.fault.c_str());
        return exit_failed;
    }
    const std::size_t of_heap = (heap_bytes() - heap) / made.size();
    double seconds = 0;
    for (const Made& rank : made) seconds += rank.seconds / static_cast<double>(made.size());
    const auto partners = hier::rail_partners(made[0].setup.topology, 0);
    std::printf("%d x %d: %d ranks\n", layout.nodes, layout.ranks, layout.nodes * layout.ranks);
    std::printf("  messages sent by rank 0       %10zu\n", world.messages(0));
    std::printf("  bytes sent by rank 0          %10zu\n", world.bytes(0));
    std::printf("  ranks that it may connect to  %10td\n",
                std::count(partners.begin(), partners.end(), true));
    std::printf("  shared memory of a node       %10zu KiB\n", shared_bytes_of_node() >> 10);
    std::printf("  other memory of a rank        %10zu KiB\n", of_heap >> 10);
    std::printf("  CPU of a rank                 %10.2f ms\n", seconds * 1e3);
    plan_calls(made[0], sizes);
    for (const Planned& p : made[0].planned)
        std::printf("  plan of %8zu bytes a rank   %10.3f ms, and %.3f ms to choose; "
                    "%zu operations, %zu KiB\n",
                    p.bytes, p.prepare * 1e3, p.choose * 1e3, p.ops, p.memory >> 10);
    return 0;
}

int run(const std::vector<std::string>& words)
{
    std::vector<std::size_t> sizes = {64, 4 << 10, 64 << 10, 1 << 20};
    std::vector<Layout> layouts;
    for (std::size_t i = 0; i < words.size(); i++) {
        if (words[i] == "--help") {
            std::fputs(usage, stdout);
            return 0;
        }
        if (words[i] == "--sizes" && i + 1 < words.size()) {
            const auto list = parse_sizes(words[++i]);
            if (list) sizes = *list;
            if (list) continue;
        }
        const auto layout = parse_layout(words[i]);
        if (!layout) {
            std::fprintf(stderr, "setup: what is \"%s\"? See --help\n", words[i].c_str());
            return exit_usage;
        }
        layouts.push_back(*layout);
    }
    if (layouts.empty()) std::fputs(usage, stderr);
    for (const Layout& layout : layouts) {
        const int code = measure(layout, sizes);
        if (code != 0) return code;
    }
    return layouts.empty() ? exit_usage : 0;
}

}  // namespace

int main(int argc, char** argv)
{
    // One heap for all threads, so that it can be counted. And cores enough for every rank, whatever
    // this machine has.
    mallopt(M_ARENA_MAX, 1);
    setenv("HWLOC_SYNTHETIC", "core:1024 pu:1", 0);
    try {
        return run({argv + 1, argv + argc});
    } catch (const std::exception& e) {
        std::fprintf(stderr, "setup: %s\n", e.what());
        return exit_failed;
    }
}
