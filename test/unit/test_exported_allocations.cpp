// Memory that its owner has freed and peers have mapped: they are told, close it, and it comes free.
#include "sdma_rank.hpp"
#include "transport/exported_allocations.hpp"
#include "transport/peer_pieces.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t large = 100 << 20;  // three of them are worth telling
static_assert(2 * large < ExportedAllocations::worth_telling &&
              3 * large > ExportedAllocations::worth_telling);

// Rank 1 has memory, rank 0 maps it. Each step is one of both ranks.
class Pair {
public:
    explicit Pair(const ForkedRank& self)
        : group_(self.group()), is_owner(self.rank() == 1),
          processes_(group_.allgather(PieceSocket::instance().address()))
    {
    }
    // New memory, mapped and in use by rank 0.
    std::byte* add(std::size_t bytes)
    {
        std::byte* const memory = is_owner ? device_memory(bytes) : nullptr;
        ExportedMemory exported{};
        if (is_owner) {
            const Allocation a = allocation_of(memory);
            exported = {reinterpret_cast<std::uint64_t>(a.base), a.length, a.id, getpid(), 0, {}};
            if (!gpu::runtime()->export_memory(a, exported.handle))
                throw std::runtime_error("no export");
            ExportedAllocations::instance().note(exported, a.device, processes_);
        }
        last_ = group_.allgather(exported)[1];
        use();
        (void)group_.allgather(0);
        return memory;
    }
    void use()
    {
        PeerMappings::Mapping* mapping = nullptr;
        if (!is_owner && failed(PeerMappings::instance().acquire(last_, 0, mapping)))
            throw std::runtime_error("no mapping");
        if (!is_owner) used_.push_back(mapping);
    }
    void give_up()
    {
        for (auto* mapping : used_) PeerMappings::instance().release(mapping);
        used_.clear();
    }
    // Mappings of rank 0 after both have looked.
    std::uint64_t mapped()
    {
        if (is_owner) ExportedAllocations::instance().look_after();
        (void)group_.allgather(0);
        if (!is_owner) PeerPieces::instance().listen(0);
        return group_.allgather(hip_sim_live("mappings"))[0];
    }
    void free(std::byte* memory) const
    {
        if (is_owner) gives_success(hipFree(memory), "hipFree");
    }
    void fill_queue() const
    {
        const PieceSocket::Entry nothing{};
        while (PieceSocket::instance().send(processes_[0], PieceSocket::What::freed, {&nothing, 1},
                                            {})) {
        }
    }

private:
    Group group_;

public:
    const bool is_owner;

private:
    std::vector<PieceSocket::Address> processes_;
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
        std::byte* const stays = pair.add(large);
        std::vector<std::byte*> others;
        for (int i = 0; i < 3; i++) others.push_back(pair.add(large));
        pair.give_up();
        if (pair.mapped() != 4) return "closed though it is there";
        pair.free(others[0]);
        pair.free(others[2]);
        if (pair.mapped() != 4) return "closed for little";
        pair.free(others[1]);
        if (pair.mapped() != 1) return "what was freed is still mapped";
        if (pair.mapped() != 1) return "what was not freed is closed";
        pair.free(stays);
        return "";
    }));
}

// Or another allocation is in its place, which the owner sees at once.
void test_memory_that_was_replaced(void**)
{
    expect_no_reason(run_pair([](Pair& pair) -> std::string {
        std::byte* memory = nullptr;
        for (int i = 0; i < 4; i++) {
            if (i > 0) pair.free(memory);
            memory = pair.add(large);
            pair.give_up();
        }
        // Rank 0 has closed the others, to map this one; told of them, it leaves it alone.
        if (pair.mapped() != 1) return "not the last one";
        const auto calls = hip_sim_calls();
        pair.use();
        if (!pair.is_owner && hip_sim_calls() != calls) return "the last one was closed";
        pair.give_up();
        std::byte* const others[] = {pair.add(large), pair.add(large)};
        pair.give_up();
        for (std::byte* const each : {memory, others[0], others[1]}) pair.free(each);
        return pair.mapped() == 0 ? "" : "the one in its place is still mapped";
    }));
}

void test_freed_memory_in_use(void**)
{
    expect_no_reason(run_pair([](Pair& pair) -> std::string {
        std::vector<std::byte*> all;
        for (int i = 0; i < 3; i++) all.push_back(pair.add(large));
        for (std::byte* const memory : all) pair.free(memory);
        if (pair.mapped() != 3) return "closed in use";
        pair.give_up();
        return pair.mapped() == 0 ? "" : "not closed when it was given up";
    }));
}

void test_a_full_queue(void**)
{
    expect_no_reason(run_pair([](Pair& pair) -> std::string {
        std::vector<std::byte*> all;
        for (int i = 0; i < 3; i++) all.push_back(pair.add(large));
        pair.give_up();
        for (std::byte* const memory : all) pair.free(memory);
        if (pair.is_owner) {
            pair.fill_queue();
            ExportedAllocations::instance().look_after();  // nobody hears it
        }
        (void)pair.mapped();
        return pair.mapped() == 0 ? "" : "never told";
    }));
}

// Of much that is small only so many are kept in mind.
void test_many(void**)
{
    expect_no_reason(run_pair([](Pair& pair) -> std::string {
        for (std::size_t i = 0; i < 2 * ExportedAllocations::most_freed; i++) {
            pair.free(pair.add(4096));
            pair.give_up();
            if (pair.is_owner) ExportedAllocations::instance().look_after();
        }
        std::vector<std::byte*> all;
        for (int i = 0; i < 3; i++) all.push_back(pair.add(large));
        pair.give_up();
        for (std::byte* const memory : all) pair.free(memory);
        for (int i = 0; i < 10; i++) (void)pair.mapped();
        return pair.mapped() == 0 ? "" : std::to_string(pair.mapped()) + " are left";
    }));
}

// By calls alone, some time after the application has gone over to other memory.
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
        for (std::uint64_t i = 0; i < 8 * phase; i++) call(other);
        const std::uint64_t left = hip_sim_live("mappings") * 2 * shard;
        return left < ExportedAllocations::worth_telling ? "" : "they stay";
    }));
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_freed_memory),
        cmocka_unit_test(test_memory_that_was_replaced),
        cmocka_unit_test(test_freed_memory_in_use),
        cmocka_unit_test(test_a_full_queue),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests_name("exported_allocations", tests, nullptr, nullptr);
}
