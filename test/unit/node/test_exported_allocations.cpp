// SPDX-License-Identifier: BSD-3-Clause
// An owner frees memory that peers have mapped. Its entry vanishes from the owner's table. The peers
// close their mappings, so that the memory comes free.
#include "node/device/exports/exported_allocations.hpp"
#include "node/device/imports/peer_mappings.hpp"
#include "node/device/imports/peer_table.hpp"
#include "test/support/engine_rank.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t large = 100 << 20;  // three of these exceed the limit
static_assert(2 * large < PeerMappings::max_freed && 3 * large > PeerMappings::max_freed);

// Rank 1 has memory, and rank 0 maps it. Both ranks do each step.
class Pair {
public:
    explicit Pair(const ForkedRank& self)
        : group_(self.group()), is_owner(self.rank() == 1),
          table_(PeerTable::open(group_.collect(ExportTable::instance().address())[1]))
    {
    }
    // Adds memory, which rank 0 maps and uses.
    std::byte* add(std::size_t bytes)
    {
        std::byte* const memory = is_owner ? device_memory(bytes) : nullptr;
        ExportedMemory exported{};
        if (is_owner) {
            const Allocation a = allocation_of(memory);
            exported = {reinterpret_cast<std::uint64_t>(a.base), a.length, a.id, getpid(), 0, {}};
            if (!gpu::runtime()->export_memory(a, exported.handle))
                throw std::runtime_error("no export");
            ExportedAllocations::instance().note(entry_of(memory), a.device);
        }
        last_ = group_.collect(exported)[1];
        use();
        (void)group_.collect(0);
        return memory;
    }
    void use()
    {
        PeerMappings::Mapping* mapping = nullptr;
        if (!is_owner) table_->take_in(0);
        if (!is_owner && failed(PeerMappings::instance().acquire(last_, 0, mapping)))
            throw std::runtime_error("no mapping");
        if (!is_owner) used_.push_back(mapping);
    }
    void give_up()
    {
        for (auto* mapping : used_) PeerMappings::instance().release(mapping);
        used_.clear();
    }
    // The number of mappings of rank 0.
    std::uint64_t mapped() { return group_.collect(hip_sim_live("mappings"))[0]; }
    void free(std::byte* memory) const
    {
        if (is_owner) gives_success(hipFree(memory), "hipFree");
    }
    static ExportEntry entry_of(const std::byte* memory)
    {
        const Allocation a = allocation_of(memory);
        return {reinterpret_cast<std::uint64_t>(a.base), a.length, a.id, -1,
                ExportEntry::Kind::allocation};
    }
    // The owner's table loses the entry, though the memory is there.
    static void say_freed(const std::byte* memory)
    {
        const ExportEntry entry = entry_of(memory);
        (void)ExportTable::instance().change({}, {&entry, 1});
    }

private:
    Group group_;

public:
    const bool is_owner;

private:
    PeerTable* table_;
    ExportedMemory last_{};
    std::vector<PeerMappings::Mapping*> used_;
};

const char* run_pair(std::string (*body)(Pair&))
{
    return run(2, "0", [&](ForkedRank& self) {
        Pair pair(self);
        return body(pair);
    });
}

void test_freed_memory(void**)
{
    expect_no_reason(run_pair([](Pair& pair) -> std::string {
        std::vector<std::byte*> all;
        for (int i = 0; i < 4; i++) all.push_back(pair.add(large));
        pair.give_up();
        pair.free(all[0]);
        pair.free(all[2]);
        std::byte* const fifth = pair.add(large / 2);
        pair.give_up();
        if (pair.mapped() != 5) return "closed for little";
        pair.free(all[1]);
        if (pair.mapped() != 5) return "closed where nothing is opened";
        std::byte* const sixth = pair.add(large / 2);
        pair.give_up();
        if (pair.mapped() != 3) return std::to_string(pair.mapped()) + " of 3 that are there";
        for (std::byte* const memory : {all[3], fifth, sixth}) pair.free(memory);
        return "";
    }));
}

// New memory comes to the address of freed memory. Rank 0 closes the old mapping by itself.
void test_memory_that_was_replaced(void**)
{
    expect_no_reason(run_pair([](Pair& pair) -> std::string {
        std::byte* memory = nullptr;
        for (int i = 0; i < 4; i++) {
            if (i > 0) pair.free(memory);
            memory = pair.add(large);
            pair.give_up();
        }
        if (pair.mapped() != 1) return "not the last one";
        const auto calls = hip_sim_calls();
        pair.use();
        if (!pair.is_owner && hip_sim_calls() != calls) return "the last one was closed";
        pair.give_up();
        std::byte* const others[] = {pair.add(large), pair.add(large)};
        pair.give_up();
        for (std::byte* const each : {memory, others[0], others[1]}) pair.free(each);
        std::byte* const last = pair.add(4096);
        pair.give_up();
        pair.free(last);
        return pair.mapped() == 1 ? "" : "the one in its place is still mapped";
    }));
}

void test_freed_memory_in_use(void**)
{
    expect_no_reason(run_pair([](Pair& pair) -> std::string {
        std::vector<std::byte*> all;
        for (int i = 0; i < 3; i++) all.push_back(pair.add(large));
        for (std::byte* const memory : all) pair.free(memory);
        (void)pair.add(4096);
        if (pair.mapped() != 4) return "closed in use";
        pair.give_up();
        if (pair.mapped() != 4) return "closed where nothing is opened";
        (void)pair.add(4096);
        pair.give_up();
        return pair.mapped() == 2 ? "" : "not closed afterwards";
    }));
}

// The entry of memory vanishes, but the memory is there. Memory that is offered again is there.
void test_memory_that_is_there(void**)
{
    expect_no_reason(run_pair([](Pair& pair) -> std::string {
        for (int i = 0; i < 3; i++) {
            std::byte* const memory = pair.add(large);
            if (pair.is_owner) pair.say_freed(memory);
        }
        pair.give_up();
        if (pair.mapped() != 3) return "closed where nothing is opened";
        pair.use();  // the last memory
        pair.give_up();
        (void)pair.add(4096);
        return pair.mapped() == 4 ? "" : "closed though two are too little";
    }));
}

// The table has no room. Peers map the memory, and do not hear that it is freed.
void test_a_full_table(void**)
{
    expect_no_reason(run_pair([](Pair& pair) -> std::string {
        std::vector<ExportEntry> others(ExportMemory::max_entries);
        for (std::size_t i = 0; i < others.size(); i++) others[i] = {i + 1, 1, i + 1};
        std::byte* const first = pair.add(large);
        others.pop_back();
        ExportTable& table = ExportTable::instance();
        if (pair.is_owner && table.change(others, {}) == 0) return "no room";
        std::vector<std::byte*> unknown;
        for (int i = 0; i < 3; i++) unknown.push_back(pair.add(large));
        pair.give_up();
        for (std::byte* const memory : unknown) pair.free(memory);
        (void)pair.add(4096);
        pair.give_up();
        if (pair.mapped() != 5) return "closed";
        if (pair.is_owner && table.change({}, others) == 0) return "the entries stay";
        pair.free(first);
        (void)pair.add(8192);
        pair.give_up();
        return pair.mapped() == 6 ? "" : "closed for little";
    }));
}

// Only calls, nothing by hand: the application turns to one new buffer after the other.
void test_calls(void**)
{
    expect_no_reason(run(2, "0", [](ForkedRank& self) -> std::string {
        constexpr std::size_t shard = 8 << 20;
        constexpr std::uint64_t phase = 40;
        Rank rank(self, false, shard);
        std::uint64_t sequence = 0;
        const auto call = [&](std::byte* receive) {
            const int peer = 1 - self.rank();
            rank.receive_into(receive);
            if (failed(rank.begin(++sequence)) || failed(rank.transport().announce(peer)) ||
                !rank.wait_for_peer(peer))
                throw std::runtime_error("no call");
            rank.transport().end();
            rank.meet();
        };
        std::vector<std::byte*> all;
        for (std::uint64_t i = 0; i < phase; i++) {
            all.push_back(device_memory(2 * shard));
            call(all.back());
        }
        if (hip_sim_live("mappings") != phase) return "not one for each";
        for (std::byte* const memory : all) gives_success(hipFree(memory), "hipFree");
        std::byte* const other = device_memory(4 * shard);
        call(other);
        if (hip_sim_live("mappings") != 1) return "they stay";
        return ExportedAllocations::instance().size() == 1 ? "" : "the owner keeps them in mind";
    }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_freed_memory),        cmocka_unit_test(test_memory_that_was_replaced),
        cmocka_unit_test(test_freed_memory_in_use), cmocka_unit_test(test_memory_that_is_there),
        cmocka_unit_test(test_a_full_table),        cmocka_unit_test(test_calls),
    };
    return hier::test::run_cases(argc, argv, "exported_allocations", tests);
}
