// SPDX-License-Identifier: BSD-3-Clause
// Device memory that cannot be exported. Peers push into cells that the receiver lends.
#include "node/device/exports/lent_memory.hpp"
#include "test/support/engine_rank.hpp"

namespace {

using namespace hier;
using namespace hier::test;

// The receiver lends memory that can be exported, and all peers map this memory.
void test_memory_that_cannot_be_exported(void**)
{
    expect_no_reason(run(3, "200", [](ForkedRank& self) -> std::string {
        Rank rank(self, self.rank() == 1);
        for (std::uint64_t sequence = 1; sequence <= 3; sequence++) {
            const auto fault = exchange(rank, self, sequence);
            if (!fault.empty()) return "call " + std::to_string(sequence) + ": " + fault;
        }
        if (hip_sim_live("mappings") != 2) return "not by copy engines";
        return ForkedRank::is_logged("peers push into 64 MiB") == (self.rank() == 1)
                   ? ""
                   : "it does not say so";
    }));
}

// The runtime tells only of the first part of the buffer. Peers may not reach the rest.
void test_memory_that_goes_on_behind_its_allocation(void**)
{
    expect_no_reason(run(2, "20", [](ForkedRank& self) -> std::string {
        Rank rank(self);
        rank.unknown = self.rank() == 1 ? 10 : 0;
        const auto fault = exchange(rank, self, 1);
        if (!fault.empty()) return fault;
        return ForkedRank::is_logged("peers push into") == (self.rank() == 1) ? "" : "exported";
    }));
}

// There are more fragments than cells, so each cell is used again and again. Twelve fragments leave
// in three copies and come in with three. The test itself makes one more copy.
void test_many_fragments(void**)
{
    expect_no_reason(run(2, "20", [](ForkedRank& self) -> std::string {
        Rank rank(self, true, (45 << 20) + 12345);
        for (std::uint64_t sequence = 1; sequence <= 3; sequence++) {
            const std::uint64_t before = hip_sim_copies();
            const auto fault = exchange(rank, self, sequence);
            if (!fault.empty()) return "call " + std::to_string(sequence) + ": " + fault;
            const std::uint64_t copies = hip_sim_copies() - before;
            if (copies > 7) return std::to_string(copies) + " copies";
        }
        return "";
    }));
}

// A rank that has heard of a failure starts no more fragments, even if cells come free.
void test_failure_among_fragments(void**)
{
    expect_no_reason(run(2, "20", [](ForkedRank& self) -> std::string {
        Rank rank(self, true, 45 << 20);
        if (const auto fault = exchange(rank, self, 1); !fault.empty()) return fault;
        if (failed(rank.begin(2)) || failed(rank.transport().announce(Op::every_peer)))
            return "begin failed";
        std::string fault;
        if (!rank.wait_for_peer(1 - self.rank())) return "never ready";
        rank.meet();
        if (self.rank() == 0) {
            const std::uint64_t before = hip_sim_copies();
            (void)rank.put_own(1, 0);
            rank.turn();
            const std::uint64_t begun = hip_sim_copies();
            if (begun == before) fault = "nothing is pushed";
            rank.transport().raise(Status::transport_error);
            if (!await([&] { return rank.transport().idle(); })) fault = "not idle";
            rank.transport().stop();
            rank.meet();
            rank.meet();
            for (int i = 0; i < 100; i++) rank.turn();
            if (hip_sim_copies() != begun) fault = "pushed after the failure";
        } else {
            rank.meet();  // no more fragments will come into the cells
            if (await([&] { return !rank.turn(); }) && rank.status != Status::peer_failed)
                fault = "heard as something else";
            rank.transport().raise(Status::peer_failed);
            if (!await([&] { return rank.transport().idle(); })) fault = "not idle";
            if (rank.transport().may_write(0, 1)) fault = "who writes into cells is waited for";
            rank.meet();
        }
        rank.meet();
        rank.transport().end();
        return fault;
    }));
}

// After a failure of any rank peers may still write into the cells.
void test_what_failed_is_not_lent_again(void**)
{
    for (const bool fails : {false, true}) {
        expect_no_reason(run(2, "20", [fails](ForkedRank& self) -> std::string {
            {
                Rank rank(self, self.rank() == 1);
                if (const auto fault = exchange(rank, self, 1); !fault.empty()) return fault;
                if (fails && self.rank() == 0) rank.transport().raise(Status::transport_error);
                rank.meet();
            }
            const std::size_t kept = fails && self.rank() == 1 ? 1 : 0;
            if (LentMemory::instance().lent() == kept) return "";
            return fails ? "it may be lent again" : "it is kept";
        }));
    }
}

// Each call that a rank needs to lend memory fails in turn. Then data goes through shared memory.
void test_nothing_to_lend(void**)
{
    constexpr std::uint64_t more_than_it_takes = 20;
    int not_lent = 0;
    bool is_lent = false;
    for (std::uint64_t failing = 1; failing <= more_than_it_takes; failing++) {
        const char* reason = run(2, "20", [failing](ForkedRank& self) -> std::string {
            Rank rank(self, self.rank() == 1);
            auto fault = exchange(rank, self, 1, self.rank() == 1 ? failing : 0);
            const std::uint64_t allocations = hip_sim_live("allocations");
            if (fault.empty()) fault = exchange(rank, self, 2);
            if (!fault.empty()) return "call " + std::to_string(failing) + ": " + fault;
            if (self.rank() == 0) return "";
            const bool lends = !ForkedRank::is_logged("through shared memory");
            // A block that cannot be exported stays and is tried again.
            if (allocations > 3 || (lends && allocations != 3)) return "not one block was made";
            return lends ? "lent" : "";
        });
        is_lent = reason != nullptr && std::string(reason) == "rank 1: lent";
        not_lent += is_lent ? 0 : 1;
        if (!is_lent) expect_no_reason(reason);
    }
    assert_true(is_lent);
    assert_true(not_lent >= 3);  // no memory, no answer to inspect(), no handle
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_that_cannot_be_exported),
        cmocka_unit_test(test_memory_that_goes_on_behind_its_allocation),
        cmocka_unit_test(test_many_fragments),
        cmocka_unit_test(test_failure_among_fragments),
        cmocka_unit_test(test_what_failed_is_not_lent_again),
        cmocka_unit_test(test_nothing_to_lend),
    };
    return hier::test::run_cases(argc, argv, "device_cells", tests);
}
