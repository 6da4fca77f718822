// Machines of up to 1,024 nodes, route and chunk by the cost model: how far from the bound?
#include <string>

#include "simulator/algorithms.hpp"

#include "cmocka.hpp"

namespace {

using namespace bench::simulator;
using namespace hier::test;

constexpr std::size_t mega = 1 << 20;

Options even(int nodes, int ranks)
{
    Options options;
    options.nodes = nodes;
    options.gpus = ranks;
    return options;
}

Result chosen(Options& options, std::size_t bytes)
{
    options.route = RouteChoice::best;
    options.algorithms = {"hier"};
    return run_all(options, bytes)[0];
}

double ratio_to_bound(int nodes, int ranks, int streams, std::size_t bytes)
{
    Options options = even(nodes, ranks);
    options.machine.streams = streams;
    const double bound = lower_bound(options.ranks_of(), bytes, options.machine).seconds();
    return chosen(options, bytes).outcome.seconds / bound;
}

const char* large_machines_are_near_the_bound()
{
    for (const int nodes : {64, 128, 512, 1024}) {
        for (const std::size_t bytes : {mega, 4 * mega, 16 * mega}) {
            const double four = ratio_to_bound(nodes, 4, 1, bytes);
            const double eight = ratio_to_bound(nodes, 8, 2, bytes);
            if (four > 1.05 || eight > 1.05)
                return keep(std::to_string(nodes) + " nodes: " + std::to_string(four) + ", " +
                            std::to_string(eight));
        }
    }
    return nullptr;
}

// One stream of copies, 8 GPUs on a node: what a copy takes to start is paid seven times a shard,
// and the shard is not large enough to hide it behind the network. Not the plan's doing: with two
// streams it is gone (above).
const char* one_stream_of_small_copies_is_slower_than_the_network()
{
    const Machine m;
    const double a_shard = 7 * (m.link_latency + mega / m.link_rate);
    const double wanted = a_shard / (mega / m.nic_rate);
    const double got = ratio_to_bound(1024, 8, 1, mega);
    if (got < wanted * 0.99 || got > wanted * 1.01)
        return keep(std::to_string(got) + " instead of " + std::to_string(wanted));
    return nullptr;
}

void test_large_machines(void**) { expect_no_reason(large_machines_are_near_the_bound()); }
void test_one_stream(void**)
{
    expect_no_reason(one_stream_of_small_copies_is_slower_than_the_network());
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_large_machines),
        cmocka_unit_test(test_one_stream),
    };
    return cmocka_run_group_tests_name("simulate at scale", tests, nullptr, nullptr);
}
