// SPDX-License-Identifier: BSD-3-Clause
// From the records of the ranks to a topology: hosts, locality, virtual nodes.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "hier/topology.hpp"
#include "test/support/machine.hpp"
#include "test/support/topology_faults.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;
using Ranks = std::vector<int>;
using Records = std::vector<PeerRecord>;

PeerRecord on(std::uint64_t node_key, std::int32_t package, std::int32_t numa,
              std::int32_t first_pu)
{
    PeerRecord record{};
    record.node_key = node_key;
    record.package = package;
    record.numa = numa;
    record.first_pu = first_pu;
    return record;
}

PeerRecord with_gpu(PeerRecord record, std::int32_t package, std::int64_t pci)
{
    record.gpu.package = package;
    record.gpu.numa = package;
    record.gpu.pci = pci;
    return record;
}

struct Case {
    Records records;
    int ranks_per_node;
    int nodes;
    int node;  // its members are `ranks`, by local index
    Ranks ranks;
};

std::string fault_of_node(const Case& c)
{
    const Topology t = make_topology(c.records, c.ranks_per_node);
    if (t.nodes() != c.nodes) {
        return std::to_string(t.nodes()) + " nodes, not " + std::to_string(c.nodes);
    }
    const auto ranks = list(t.ranks_on(c.node));
    if (ranks == c.ranks) return "";
    return "node " + std::to_string(c.node) + ": " + text_of(ranks) + ", not " + text_of(c.ranks);
}

const char* records_give(const std::vector<Case>& cases)
{
    for (std::size_t i = 0; i < cases.size(); i++) {
        const std::string fault = fault_of_node(cases[i]);
        if (!fault.empty()) return keep("case " + std::to_string(i) + ": " + fault);
    }
    return nullptr;
}

const char* records_by_host()
{
    // Keys that differ only in their highest or lowest bits are different hosts.
    constexpr std::uint64_t high = std::uint64_t{1} << 63U;
    return records_give({{{on(high, 0, 0, 0), on(0, 0, 0, 1), on(1, 0, 0, 2)}, 0, 3, 0, {0}},
                         {{on(5, 0, 0, 0), on(9, 0, 0, 0), on(5, 0, 0, 1)}, 0, 2, 0, {0, 2}}});
}

void test_hosts(void**) { expect_no_reason(records_by_host()); }

// Package before NUMA node before core. A rank that is not bound (-1) comes first.
const char* records_by_locality()
{
    return records_give({{{on(1, 1, 0, 0), on(1, 0, 1, 1), on(1, 0, 0, 2), on(1, -1, -1, 9)},
                          0,
                          1,
                          0,
                          {3, 2, 1, 0}},
                         {{on(1, 0, 0, 8), on(1, 0, 0, 4), on(1, 0, 0, 6)}, 0, 1, 0, {1, 2, 0}}});
}

void test_locality(void**) { expect_no_reason(records_by_locality()); }

// By the GPUs if all ranks of the host have one, by the cores otherwise. Each host decides for
// itself.
const char* records_by_gpu()
{
    const auto cores = on(1, 0, 0, 0);
    const auto far = on(1, 1, 1, 8);
    const auto other = on(2, 0, 0, 0);
    const Records gpus = {with_gpu(cores, 1, 0x50), with_gpu(far, 0, 0x20),
                          with_gpu(cores, 1, 0x40), with_gpu(far, 0, 0x10)};
    Records one_without = gpus;
    one_without[3].gpu = {};
    const Records two_hosts = {with_gpu(cores, 1, 0x50), on(2, 0, 0, 1), with_gpu(far, 0, 0x20),
                               with_gpu(other, 0, 0x10)};
    const Records no_places = {with_gpu(far, -1, 0x20), with_gpu(cores, -1, 0x30),
                               with_gpu(cores, -1, 0x10)};
    const Records one_gpu = {with_gpu(far, 0, 7), with_gpu(cores, 0, 7)};
    return records_give({{gpus, 0, 1, 0, {3, 1, 2, 0}},
                         {gpus, 2, 2, 0, {2, 0}},
                         {gpus, 2, 2, 1, {3, 1}},
                         {one_without, 0, 1, 0, {0, 2, 1, 3}},
                         {two_hosts, 0, 2, 0, {2, 0}},
                         {two_hosts, 0, 2, 1, {3, 1}},
                         {no_places, 0, 1, 0, {2, 0, 1}},
                         {one_gpu, 0, 1, 0, {1, 0}}});
}

void test_gpus(void**) { expect_no_reason(records_by_gpu()); }

const char* ranks_on_one_core()
{
    return records_give({{{on(1, 0, 0, 0), on(1, 0, 0, 0), on(1, 0, 0, 0)}, 0, 1, 0, {0, 1, 2}},
                         {{on(1, 0, 0, 3), on(1, 0, 0, 1), on(1, 0, 0, 3)}, 0, 1, 0, {1, 0, 2}}});
}

void test_equal_records(void**) { expect_no_reason(ranks_on_one_core()); }

bool pid_and_cpus_do_not_matter()
{
    Records records(4, on(1, 0, 0, 0));
    for (std::size_t r = 0; r < records.size(); r++) {
        records[r].pid = 1000 - static_cast<std::int32_t>(r);
        records[r].cpus = 64 - static_cast<std::int32_t>(r);
    }
    return fault_of_node({records, 0, 1, 0, {0, 1, 2, 3}}).empty();
}

void test_what_does_not_order(void**) { assert_true(pid_and_cpus_do_not_matter()); }

const char* virtual_nodes()
{
    const Records five(5, on(1, 0, 0, 0));
    const Records two_hosts = {on(1, 0, 0, 0), on(2, 0, 0, 0), on(1, 0, 0, 1), on(2, 0, 0, 1),
                               on(1, 0, 0, 2)};
    const Records two_packages = {on(1, 0, 0, 0), on(1, 1, 0, 2), on(1, 0, 0, 1), on(1, 1, 0, 3)};
    return records_give({{five, 0, 1, 0, {0, 1, 2, 3, 4}},
                         {five, 1, 5, 4, {4}},
                         {five, 2, 3, 1, {2, 3}},
                         {five, 2, 3, 2, {4}},
                         {five, 5, 1, 0, {0, 1, 2, 3, 4}},
                         {five, 100, 1, 0, {0, 1, 2, 3, 4}},
                         // Each host is cut by itself: no virtual node has ranks of two.
                         {two_hosts, 2, 3, 0, {0, 2}},
                         {two_hosts, 2, 3, 1, {1, 3}},
                         {two_hosts, 2, 3, 2, {4}},
                         // Neighbours by locality share a virtual node, whatever their ranks.
                         {two_packages, 2, 2, 0, {0, 2}},
                         {two_packages, 2, 2, 1, {1, 3}}});
}

void test_virtual_nodes(void**) { expect_no_reason(virtual_nodes()); }

bool random_records_hold()
{
    std::mt19937 random(3);
    for (int i = 0; i < 200; i++) {
        Records records(1 + random() % 20);
        for (auto& r : records) {
            r = on(random() % 3, static_cast<int>(random() % 3) - 1, static_cast<int>(random() % 2),
                   static_cast<int>(random() % 4));
        }
        const int k = static_cast<int>(random() % 5);
        const Topology t = make_topology(records, k);
        for (int n = 0; n < t.nodes(); n++) {
            const auto ranks = t.ranks_on(n);
            const auto key = [&](int r) { return records[static_cast<std::size_t>(r)].node_key; };
            if (k > 0 && ranks.size() > static_cast<std::size_t>(k)) return false;
            for (const int r : ranks) {
                if (key(r) != key(ranks[0])) return false;
            }
        }
        if (!fault_of_rails(t).empty() || !fault_of_entries(t).empty()) return false;
    }
    return true;
}

void test_random_records(void**) { assert_true(random_records_hold()); }

// Records that no rank sends.
void test_wrong_records(void**)
{
    PeerRecord good = on(1, -1, -1, -1);
    good.pid = 12;
    assert_null(fault_of(good));
    PeerRecord bad[5] = {good, good, good, good, good};
    bad[0].pid = 0;
    bad[1].devices = -1;
    bad[2].gpu.root_port = -2;
    bad[3].gpu.pci = INT64_MIN;
    bad[4].gpu_turns = 2;
    for (const PeerRecord& record : bad) assert_non_null(fault_of(record));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),          cmocka_unit_test(test_locality),
        cmocka_unit_test(test_equal_records),  cmocka_unit_test(test_what_does_not_order),
        cmocka_unit_test(test_gpus),           cmocka_unit_test(test_virtual_nodes),
        cmocka_unit_test(test_random_records), cmocka_unit_test(test_wrong_records),
    };
    return hier::test::run_cases(argc, argv, "records", tests);
}
