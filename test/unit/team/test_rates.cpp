// SPDX-License-Identifier: BSD-3-Clause
// The rates of a team's machine, as the cost model gets them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "team/rates.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr double giga = 1e9;

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

RateRecord record(const char* device, double told, bool uses_device = false, double link = 0)
{
    hier_config config{};
    config.link_rate = link;
    return own_rates(config, uses_device, {.devices = device, .rate = {told, 2e-6}});
}

Topology two_nodes()
{
    const std::vector<int> nodes{0, 0, 1, 1};
    return Topology(nodes);
}

// ---- one rank

void test_stated_before_told(void**)
{
    hier_config config{};
    assert_true(near(own_rates(config, false, {.rate = {25 * giga, 0}}).nic, 25 * giga));
    config.net_rate = 12.5;
    const RateRecord stated = own_rates(config, false, {.rate = {25 * giga, 0}});
    assert_true(near(stated.nic, 12.5 * giga) && stated.nic_is == RateRecord::stated);
}

// A tuning file comes before what UCX says, and behind what the user states.
void test_tuned_rates(void**)
{
    Tuning tuning;
    tuning.tcp_rate = 1;
    tuning.core_rate = 2;
    tuning.engine_rate = 3;
    hier_config config{};
    const NetworkTraits network{.rate = {25 * giga, 0}, .is_tcp = true};
    const RateRecord rdma = own_rates(config, false, {.rate = {25 * giga, 0}}, &tuning);
    assert_true(near(rdma.nic, 25 * giga) && rdma.nic_is == RateRecord::told);
    const RateRecord host = own_rates(config, false, network, &tuning);
    assert_true(near(host.nic, giga) && host.nic_is == RateRecord::tuned);
    assert_true(near(host.link, 2 * giga) && host.link_is == RateRecord::tuned);
    const RateRecord device = own_rates(config, true, network, &tuning);
    assert_true(near(device.link, 3 * giga));
    config.net_rate = config.link_rate = 12;
    const RateRecord stated = own_rates(config, false, network, &tuning);
    assert_true(near(stated.nic, 12 * giga) && stated.nic_is == RateRecord::stated);
    assert_true(near(stated.link, 12 * giga) && stated.link_is == RateRecord::stated);
    const TeamRates team = team_rates(std::vector(4, host), two_nodes());
    assert_non_null(std::strstr(team.text.c_str(), "1 GB/s (tuning file)"));
    assert_non_null(std::strstr(team.text.c_str(), "cores at 2 GB/s (tuning file)"));
}

// UCX takes an interface without a speed for one of 100 Mbit/s.
void test_unknown_is_assumed(void**)
{
    for (const double told : {0.0, 12.5e6}) {
        const RateRecord r = own_rates({}, false, {.rate = {told, 0}, .is_tcp = true});
        assert_true(r.nic_is == RateRecord::assumed && r.nic > giga);
    }
}

// ---- a team

void test_all_ranks_have_threads(void**)
{
    hier_config config{};
    config.has_threads = 1;
    std::vector<RateRecord> records(4, own_rates(config, false, {}));
    assert_true(team_rates(records, two_nodes()).has_threads);
    records[2] = own_rates({}, false, {});
    assert_false(team_rates(records, two_nodes()).has_threads);
    records[2].has_threads = 2;
    assert_non_null(fault_of(records[2]));
}

void test_the_slowest_counts(void**)
{
    const std::vector<RateRecord> records{record("a", 25 * giga), record("a", 12 * giga),
                                          record("a", 25 * giga), record("a", 50 * giga)};
    const TeamRates team = team_rates(records, two_nodes());
    assert_true(near(team.rates.nic, 12 * giga));
    assert_true(team.text.find("12 GB/s (UCX says)") != std::string::npos);
}

void test_the_least_memory_counts(void**)
{
    std::vector<RateRecord> records(4, record("a", giga));
    for (RateRecord& r : records) r.max_bytes = 1 << 30;
    records[2].max_bytes = 1 << 20;
    assert_int_equal(team_rates(records, two_nodes()).max_bytes, 1 << 20);
}

void test_the_least_publish_counts(void**)
{
    std::vector<RateRecord> records(4, record("a", giga));
    for (RateRecord& r : records) r.publish = 16000;
    assert_int_equal(team_rates(records, two_nodes()).rates.publish_space, 16000);
    records[3].publish = 0;
    assert_int_equal(team_rates(records, two_nodes()).rates.publish_space, 0);
}

// On a single node. On several ones a published block saves messages, and small ones go by eager calls.
void test_the_least_small_block_counts(void**)
{
    std::vector<RateRecord> records(2, record("a", giga));
    const std::vector<int> together{0, 0}, apart{0, 1};
    assert_int_equal(team_rates(records, Topology(together)).rates.small_bytes, 16 << 10);
    for (RateRecord& r : records) r.small_block = 128 << 10;
    assert_int_equal(team_rates(records, Topology(together)).rates.small_bytes, 128 << 10);
    records[1].small_block = 4 << 10;
    assert_int_equal(team_rates(records, Topology(together)).rates.small_bytes, 4 << 10);
    assert_int_equal(team_rates(records, Topology(apart)).rates.small_bytes, 16 << 10);
}

// A node whose ranks share less decides for all. Copy engines put device memory, whatever the size.
void test_the_least_shared_result_counts(void**)
{
    std::vector<RateRecord> records(2, record("a", giga));
    const std::vector<int> together{0, 0};
    assert_int_equal(team_rates(records, Topology(together)).rates.shared_result, 0);
    records[0].shared_result = 2 << 20;
    records[1].shared_result = 1 << 20;
    assert_int_equal(team_rates(records, Topology(together)).rates.shared_result, 1 << 20);
    for (RateRecord& r : records) r.uses_device = 1;
    assert_int_equal(team_rates(records, Topology(together)).rates.shared_result, 0);
}

// Ranks on a GPU of their own publish nothing in device memory. Others do, and larger blocks if the
// GPU is given in turns.
void test_publishing_on_shared_gpus(void**)
{
    for (const int ranks : {2, 4, 8}) {
        const std::vector<int> one_node(static_cast<std::size_t>(ranks), 0);
        const Topology node(one_node);
        std::vector<RateRecord> records(static_cast<std::size_t>(ranks), record("a", giga, true));
        const Rates alone = team_rates(records, node).rates;
        assert_int_equal(alone.publish_space, 0);
        for (RateRecord& r : records) r.publish = 100000;
        const Rates shared = team_rates(records, node, {.share_gpus = true}).rates;
        assert_true(shared.detour > 0 && shared.small_bytes == (ranks == 2   ? 0
                                                                : ranks == 4 ? 8 << 10
                                                                             : 32 << 10));
        const NodeGpus turns = {.share_gpus = true, .gpu_turns = true};
        assert_true(team_rates(records, node, turns).rates.small_bytes >= 100000);
    }
}

// Where GPUs are used, the ranks with host memory publish it, whatever becomes of device memory.
void test_publishing_host_memory(void**)
{
    const std::vector<int> together(3, 0), apart{0, 0, 1};
    std::vector<RateRecord> records(3, record("a", giga));
    for (RateRecord& r : records) {
        r.host_publish = 30000;
        r.small_block = 8 << 10;
    }
    assert_int_equal(team_rates(records, Topology(together)).rates.host_publish_bytes, 0);
    records[2].uses_device = 1;
    for (const std::vector<int>& nodes : {together, apart}) {
        const Rates rates = team_rates(records, Topology(nodes)).rates;
        assert_int_equal(rates.host_publish_bytes, nodes == together ? 8 << 10 : 16 << 10);
        assert_int_equal(rates.host_publish_space, 30000);
        assert_int_equal(rates.publish_space, 0);
    }
    records[1].host_publish = 0;
    assert_int_equal(team_rates(records, Topology(together)).rates.host_publish_space, 0);
}

// The CPU moves the smallest blocks. Larger ones go as without it.
void test_publishing_by_the_cpu(void**)
{
    const std::vector<int> one_node(4, 0);
    const Topology node(one_node);
    std::vector<RateRecord> records(4, record("a", giga, true));
    for (RateRecord& r : records) r.publish = 32 << 10;
    assert_int_equal(team_rates(records, node, {.max_by_cpu = 1024}).rates.small_bytes, 1024);
    for (const std::size_t most : {1 << 10, 16 << 10}) {
        const NodeGpus gpus = {.share_gpus = true, .max_by_cpu = most};
        assert_int_equal(team_rates(records, node, gpus).rates.small_bytes,
                         std::max<std::size_t>(8 << 10, most));
    }
}

// Kernels that wait for each other take 256 KiB in all, of 2 GPUs 64 KiB, on shared GPUs blocks of 32 KiB.
void test_publishing_by_kernels(void**)
{
    for (const int ranks : {2, 8, 32}) {
        const std::vector<int> one_node(static_cast<std::size_t>(ranks), 0);
        const Topology node(one_node);
        std::vector<RateRecord> records(static_cast<std::size_t>(ranks), record("a", giga, true));
        for (RateRecord& r : records) r.publish = 512 << 10;
        const auto blocks = static_cast<std::size_t>(ranks);
        const Rates alone = team_rates(records, node, {.have_kernels = true}).rates;
        assert_int_equal(alone.small_bytes, (ranks == 2 ? 64 << 10 : 256 << 10) / blocks);
        const Rates shared =
            team_rates(records, node, {.share_gpus = true, .have_kernels = true}).rates;
        assert_int_equal(shared.small_bytes, 32 << 10);
        assert_true(shared.detour > alone.detour);
    }
}

// Kernels push chunks if they do so on all nodes. A rank that is alone on its node pushes nothing.
void test_pushing_by_kernels(void**)
{
    constexpr std::uint64_t most = 512 << 10, alone = RateRecord::alone, any = RateRecord::any_size;
    std::vector<RateRecord> records(4, record("a", giga, true));
    const auto fan_out = [&](std::vector<std::uint64_t> of_ranks) {
        for (std::size_t r = 0; r < of_ranks.size(); r++) records[r].fan_out = of_ranks[r];
        return team_rates(records, two_nodes()).rates.fan_out;
    };
    assert_int_equal(fan_out({most, most, most, most}), most);
    assert_int_equal(fan_out({most, most, most, alone}), most);
    assert_int_equal(fan_out({most, most, most, 0}), 0);
    assert_int_equal(fan_out({alone, alone, alone, alone}), 0);
    assert_int_equal(fan_out({any, any, most, most}), most);
    assert_int_equal(fan_out({any, any, alone, any}), any);
    records[0].uses_device = 0;
    assert_int_equal(fan_out({most, most, most, most}), 0);
}

void test_devices_of_the_poorest_node(void**)
{
    std::vector<RateRecord> records{record("a", giga), record("b", giga), record("a", giga),
                                    record("b", giga)};
    assert_int_equal(team_rates(records, two_nodes()).rates.nics, 2);
    records[3] = record("a", giga);
    assert_int_equal(team_rates(records, two_nodes()).rates.nics, 1);
}

void test_several_devices_a_rank(void**)
{
    std::vector<RateRecord> records{record("a,b", giga), record("c,d", giga), record("a,b", giga),
                                    record("c,d", giga)};
    for (RateRecord& r : records) r.lanes = 2;
    const TeamRates team = team_rates(records, two_nodes());
    assert_int_equal(team.rates.lanes, 2);
    assert_int_equal(team.rates.nics, 2);
    assert_true(team.text.starts_with("4 network devices a node, 2 a rank, at 1 GB/s"));
    records[1].lanes = 1;
    assert_int_equal(team_rates(records, two_nodes()).rates.lanes, 1);
}

// A choice must not depend on the memory of one rank's buffers.
void test_gpus_only_where_all_use_them(void**)
{
    std::vector<RateRecord> records(4, record("a", giga, true));
    const Rates gpus = team_rates(records, two_nodes()).rates;
    assert_true(gpus.copy_issue > 0 && gpus.engines);
    records[2] = record("a", giga, false);
    const Rates mixed = team_rates(records, two_nodes()).rates;
    assert_true(mixed.copy_issue == 0 && !mixed.engines && mixed.link < gpus.link);
}

void test_staged_where_one_has_to(void**)
{
    std::vector<RateRecord> records(4, record("a", giga, true));
    assert_true(team_rates(records, two_nodes()).rates.stage == 0);
    records[1].stages = 1;
    assert_true(team_rates(records, two_nodes()).rates.stage > 0);
}

void test_eager_where_all_deliver_in_order(void**)
{
    std::vector<RateRecord> records(4, record("a", giga));
    for (RateRecord& r : records) r.in_order = 1;
    assert_true(team_rates(records, two_nodes()).may_be_eager);
    records[3].in_order = 0;
    assert_false(team_rates(records, two_nodes()).may_be_eager);
}

void test_stated_links(void**)
{
    std::vector<RateRecord> records(4, record("a", giga, true, 350));
    records[1] = record("a", giga, true, 0);
    records[2] = record("a", giga, true, 300);
    assert_true(near(team_rates(records, two_nodes()).rates.link, 300 * giga));
}

// Records that no rank sends.
void test_wrong_records(void**)
{
    const RateRecord good = record("eth0", 25 * giga);
    assert_null(fault_of(good));
    RateRecord bad[5] = {good, good, good, good, good};
    bad[0].lanes = 0;
    bad[1].nic = std::nan("");
    bad[2].nic_is = 4;
    bad[3].message = -1;
    bad[4].stages = 2;
    for (const RateRecord& each : bad) assert_non_null(fault_of(each));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_stated_before_told),
        cmocka_unit_test(test_tuned_rates),
        cmocka_unit_test(test_unknown_is_assumed),
        cmocka_unit_test(test_all_ranks_have_threads),
        cmocka_unit_test(test_the_slowest_counts),
        cmocka_unit_test(test_the_least_memory_counts),
        cmocka_unit_test(test_the_least_publish_counts),
        cmocka_unit_test(test_the_least_small_block_counts),
        cmocka_unit_test(test_the_least_shared_result_counts),
        cmocka_unit_test(test_publishing_on_shared_gpus),
        cmocka_unit_test(test_publishing_host_memory),
        cmocka_unit_test(test_publishing_by_the_cpu),
        cmocka_unit_test(test_publishing_by_kernels),
        cmocka_unit_test(test_pushing_by_kernels),
        cmocka_unit_test(test_devices_of_the_poorest_node),
        cmocka_unit_test(test_several_devices_a_rank),
        cmocka_unit_test(test_gpus_only_where_all_use_them),
        cmocka_unit_test(test_staged_where_one_has_to),
        cmocka_unit_test(test_eager_where_all_deliver_in_order),
        cmocka_unit_test(test_stated_links),
        cmocka_unit_test(test_wrong_records),
    };
    return hier::test::run_cases(argc, argv, "rates", tests);
}
