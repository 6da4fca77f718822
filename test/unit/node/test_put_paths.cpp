// SPDX-License-Identifier: BSD-3-Clause
// Which way puts of host memory take inside a node, between processes: CMA or cells.
#include <string>
#include <vector>

#include "node/node_paths.hpp"
#include "test/support/forked.hpp"
#include "test/support/node_traffic.hpp"
#include "test/support/wrapped/system.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

struct Ignore final : Completions {
    void complete(std::uint32_t, Status status) override { last = status; }
    Status last = Status::in_progress;
};

// Makes puts of these sizes from rank 0 to rank 1, one after the other. Returns "" or a fault.
// `is_by_cma`: did any put go by process_vm_writev?
std::string put_one_by_one(Transport& transport, const ForkedRank& self, std::uint64_t sequence,
                           const std::vector<std::size_t>& sizes, bool& is_by_cma)
{
    std::size_t total = 0;
    for (const std::size_t size : sizes) total += size;
    std::vector<std::byte> buffer(total, std::byte(self.rank() == 0 ? 1 : 0));
    const Region all{buffer.data(), total};
    Binding binding{sequence, all, all};
    binding.total = total;
    if (failed(transport.begin(binding)) || failed(transport.announce(Op::every_peer)))
        return "begin failed";
    const int peer = self.rank() == 0 ? 1 : 0;
    (void)await([&] { return transport.announced(peer) == Status::ok; });
    const int before = writev_calls;
    Ignore ignore;
    std::size_t offset = 0;
    for (std::uint32_t i = 0; i < sizes.size() && self.rank() == 0; i++) {
        ignore.last = transport.put(
            {1, {offset, offset, sizes[i]}, Place::receive, Place::receive, i + 1, i});
        const bool is_done = await([&] {
            if (ignore.last == Status::in_progress) (void)transport.progress(ignore);
            return ignore.last == Status::ok;
        });
        if (!is_done) return "a put is never done";
        offset += sizes[i];
    }
    is_by_cma = writev_calls != before;
    // Puts arrive in their order.
    for (std::uint32_t i = 0; i < sizes.size() && self.rank() == 1; i++) {
        if (!await([&] { return (void)transport.progress(ignore), transport.arrived(0) > i; }))
            return "a put never arrives";
        offset += sizes[i];
        for (std::size_t b = 0; b < offset; b++)
            if (buffer[b] != std::byte(1)) return "put " + std::to_string(i) + " was overtaken";
    }
    transport.end();
    return "";
}

// Small puts go through cells, and large ones by CMA. The first put of a call decides, so that no
// put overtakes another one.
void test_the_first_put_decides(void**)
{
    constexpr std::size_t small = PathChoice::max_of_two, large = small + 1;
    struct {
        std::vector<std::size_t> sizes;
        bool by_cma;
    } const calls[] = {{{small}, false},
                       {{large}, true},
                       {{1, large, large}, false},
                       {{large, 1}, true},
                       {{small, 1, 9 * large}, false},
                       {{large}, true}};
    expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
        const auto transport = make_transport(self, HIER_INTRA_AUTO);
        std::uint64_t sequence = 0;
        for (const auto& call : calls) {
            bool is_by_cma = false;
            const auto fault = put_one_by_one(*transport, self, ++sequence, call.sizes, is_by_cma);
            const std::string which = "call " + std::to_string(sequence) + ": ";
            if (!fault.empty()) return which + fault;
            if (self.rank() == 0 && is_by_cma != call.by_cma) return which + "the other way";
            (void)self.group().collect(0);
        }
        return "";
    }))));
}

// Three ranks put the blocks of a small result through cells, and eight put all blocks.
void test_more_ranks_take_cells(void**)
{
    constexpr std::size_t block = 100000, many = 8;
    struct {
        int ranks;
        std::vector<std::size_t> sizes;
        bool by_cma;
    } const calls[] = {{3, {block, 1}, false},
                       {3, {PathChoice::max_result, 1}, true},
                       {many, {3 << 20, 1}, false}};
    for (const auto& call : calls) {
        expect_no_reason(
            keep(first_fault(run_ranks(call.ranks, [&](ForkedRank& self) -> std::string {
                const auto transport = make_transport(self, HIER_INTRA_AUTO);
                bool is_by_cma = false;
                const auto fault = put_one_by_one(*transport, self, 1, call.sizes, is_by_cma);
                if (!fault.empty()) return fault;
                return self.rank() == 0 && is_by_cma != call.by_cma ? "the other way" : "";
            }))));
    }
}

// The rank that copies the bytes out of a cell is then the one that needs them next.
void test_shared_cores_take_cells(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        const auto transport = make_transport(self, HIER_INTRA_AUTO, true);
        if (std::string(transport->name()) != "shared memory") return transport->name();
        bool is_by_cma = false;
        const auto fault = put_one_by_one(*transport, self, 1, {3 << 20, 1, 3 << 20}, is_by_cma);
        return fault.empty() && is_by_cma ? "by CMA" : fault;
    }))));
}

// CMA does not reach some memory, such as memory of devices or of memfd_secret. If the first put
// shows that, puts go through cells.
void test_memory_that_cma_does_not_reach(void**)
{
    constexpr std::size_t large = PathChoice::max_through_cells + 1;
    expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
        const auto transport = make_transport(self, HIER_INTRA_AUTO);
        std::uint64_t sequence = 0;
        for (const auto mode : {Writev::faults, Writev::works, Writev::is_refused, Writev::works}) {
            writev_mode = mode;
            bool is_tried = false;
            const auto fault =
                put_one_by_one(*transport, self, ++sequence, {large, 1, 3 << 20}, is_tried);
            if (!fault.empty()) return fault;
            if (self.rank() == 0 && !is_tried) return "CMA was not tried";
            (void)self.group().collect(0);
            bool is_long = false;  // goes in parts, and each part may be refused
            const auto fault_of_long =
                put_one_by_one(*transport, self, ++sequence, {3 << 20, large}, is_long);
            if (!fault_of_long.empty()) return "a long one: " + fault_of_long;
            (void)self.group().collect(0);
        }
        return "";
    }))));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_put_decides),
        cmocka_unit_test(test_more_ranks_take_cells),
        cmocka_unit_test(test_shared_cores_take_cells),
        cmocka_unit_test(test_memory_that_cma_does_not_reach),
    };
    return hier::test::run_cases(argc, argv, "put_paths", tests);
}
