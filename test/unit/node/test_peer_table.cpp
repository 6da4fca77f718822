// SPDX-License-Identifier: BSD-3-Clause
// A process takes in the table of another one while that one changes it, dies, or writes nonsense.
#include <unistd.h>

#include <random>

#include "node/device/exports/vmm_exports.hpp"
#include "node/device/imports/peer_mappings.hpp"
#include "node/device/imports/peer_vmm_segments.hpp"
#include "test/support/engine_rank.hpp"
#include "test/support/own_table.hpp"
#include "test/support/wrapped/system.hpp"

namespace {

using namespace hier;
using namespace hier::test;

const Group* group_now = nullptr;

void meet() { (void)group_now->collect(0); }

// Rank 1 owns the table, and rank 0 takes it in.
const char* run_pair(const std::function<std::string(bool is_owner, PeerTable* table)>& body)
{
    return run(2, "0", [&](ForkedRank& self) {
        const Group group = self.group();
        group_now = &group;
        const auto addresses = group.collect(ExportTable::instance().address());
        PeerTable* const table = PeerTable::open(addresses[self.rank() == 0 ? 1 : 0]);
        if (table == nullptr) return std::string("no table");
        const std::string fault = body(self.rank() == 1, table);
        meet();
        return fault;
    });
}

bool share(std::byte* memory, std::size_t bytes, PeerTable* peer)
{
    std::uint64_t digest = 0;
    return VmmExports::instance().share({memory, bytes, allocation_of(memory)}, {&peer, 1}, digest);
}

// The owner closes a descriptor and opens another file under this number, between the moments at
// which its peer reads the number and takes the file.
void test_a_number_that_is_used_again(void**)
{
    expect_no_reason(run_pair([](bool is_owner, PeerTable* table) -> std::string {
        static int times = 0;
        std::byte* const base = is_owner ? mapped_memory(1, 1) : nullptr;
        if (is_owner && !share(base, segment_bytes, table)) return "not offered";
        meet();
        if (is_owner) {
            meet();  // the peer has read the number
            const int number = entry_at(0).descriptor;
            unmap_segment(base);
            map_segment(base, 1);
            VmmExports::instance().look_after();
            if (dup2(0, number) != number) return "another number";
            meet();
            meet();
            return share(base, segment_bytes, table) ? "" : "not offered again";
        }
        before_getfd = [] {
            if (times++ > 0) return;
            meet();
            meet();
        };
        table->take_in(0);
        const bool is_fooled = hip_sim_live("handles") != 0;
        meet();
        if (times == 0) return "not in time";
        return is_fooled ? "another file for a segment" : "";
    }));
}

// The owner changes its table each time that a descriptor is taken. The peer gives up for now.
void test_a_table_that_never_rests(void**)
{
    expect_no_reason(run_pair([](bool is_owner, PeerTable* table) -> std::string {
        constexpr int times = 4;
        std::byte* const base = is_owner ? mapped_memory(1, 1) : nullptr;
        if (is_owner && !share(base, segment_bytes, table)) return "not offered";
        meet();
        if (is_owner) {
            const ExportEntry nothing{1, 1, 1};
            for (int i = 0; i < times; i++) {
                meet();
                (void)ExportTable::instance().change({&nothing, 1}, {});
                meet();
            }
            meet();
            return "";
        }
        before_getfd = [] {
            meet();
            meet();
        };
        table->take_in(0);
        before_getfd = nullptr;
        const bool is_early = hip_sim_live("handles") != 0;
        table->take_in(0);
        const bool is_there = hip_sim_live("handles") == 1;
        meet();
        if (is_early) return "taken all the same";
        return is_there ? "" : "not there when the table rests";
    }));
}

void test_an_owner_that_dies(void**)
{
    expect_no_reason(run(2, "0", [](ForkedRank& self) -> std::string {
        const Group group = self.group();
        const auto addresses = group.collect(ExportTable::instance().address());
        PeerTable* const table = PeerTable::open(addresses[self.rank() == 0 ? 1 : 0]);
        if (self.rank() == 1 && !share(mapped_memory(1, 1), segment_bytes, table))
            return "not offered";
        (void)group.collect(0);
        if (self.rank() == 1) return "";
        if (!await([&] { return table->pull(addresses[1].descriptor) < 0; })) return "still there";
        table->take_in(0);
        return hip_sim_live("handles") == 0 ? "" : "a segment of nobody";
    }));
}

// Whatever another process writes into its table, this process lives on and takes only what makes
// sense. The words are random, so some of them are almost right.
void test_nonsense(void**)
{
    expect_no_reason(run_pair([](bool is_owner, PeerTable* table) -> std::string {
        constexpr int rounds = 200;
        SharedMemory own;
        if (is_owner)
            own =
                SharedMemory::open(ExportTable::instance().address().memory, sizeof(ExportMemory));
        std::mt19937_64 random(1);
        for (int round = 0; round < rounds; round++) {
            if (is_owner) {
                auto& memory = *reinterpret_cast<ExportMemory*>(own.data());
                memory.count = round % 2 == 0 ? 20 : random();
                for (std::size_t i = 0; i < 20; i++) {
                    for (auto& word : memory.entries[i]) word = random() >> random() % 64;
                    memory.entries[i][3] = (random() % 3) << 32 | random() % 12;
                }
                memory.version = static_cast<std::uint64_t>(round) * 2 + 2 + (round % 5 == 0);
            }
            meet();
            if (!is_owner) {
                table->take_in(0);
                PeerVmmSegments::Window* window = nullptr;
                std::byte* at = nullptr;
                const PeerVmmSegments::Range range{random(), random(), random()};
                if (PeerVmmSegments::instance().acquire(*table, range, 0, window, at) == Status::ok)
                    return "a range of nonsense";
            }
            meet();
        }
        return "";
    }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_a_number_that_is_used_again),
        cmocka_unit_test(test_a_table_that_never_rests),
        cmocka_unit_test(test_an_owner_that_dies),
        cmocka_unit_test(test_nonsense),
    };
    return hier::test::run_cases(argc, argv, "peer_table", tests);
}
