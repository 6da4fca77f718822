// SPDX-License-Identifier: BSD-3-Clause
// Several blocks that are started together, as chunks that have arrived are: which go by a kernel, how many share one,
// and that all bytes are there when the last signal is.
#include "base/statistics.hpp"
#include "test/support/engine_rank.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t kib = 1 << 10, shard = 3 << 20, largest = max_chunk_by_kernel(2);

// Blocks lie in the receive buffers, at the same place in the shard of each rank that pushes them.
struct Block {
    std::size_t at, bytes;
    int peers = 2;
};

struct BlocksCase {
    const char* name;
    std::vector<Block> blocks;
    std::uint64_t by_kernels;  // so many of them, by each rank in a call
    std::uint64_t kernels;     // that take them
    FanOutUse use = FanOutUse::chunks;
    bool in_background = false;
    bool has_file = true;  // are the kernels installed?
};

class Pusher {
public:
    Pusher(ForkedRank& self, const BlocksCase& c)
        : c_(c), self_(self), rank_(self, false, shard, c.use)
    {
        rank_.in_background = c.in_background;
    }
    std::string call(std::uint64_t sequence)
    {
        rank_.counter = {};
        put(rank_.receive() + rank_.at(self_.rank()), content(self_.rank(), sequence, shard));
        if (failed(rank_.begin(sequence)) || failed(rank_.transport().announce(Op::every_peer)))
            return "begin failed";
        for (int peer = 0; peer < self_.size(); peer++)
            if (peer != self_.rank() && !rank_.wait_for_peer(peer)) return "a peer is never ready";
        const std::uint64_t kernels = hip_sim_kernels(), told = counted();
        const int puts = push_all();
        std::string fault = received(sequence);
        if (fault.empty() && !await([&] { return !rank_.turn() || rank_.counter.done == puts; }))
            fault = "not completed";
        if (fault.empty() && failed(rank_.counter.worst)) fault = "a failure";
        if (fault.empty() && hip_sim_kernels() - kernels != c_.kernels)
            fault = std::to_string(hip_sim_kernels() - kernels) + " kernels";
        if (fault.empty() && counted() - told != c_.by_kernels) fault = "counted otherwise";
        rank_.transport().end();
        rank_.meet();
        return fault;
    }

private:
    static std::uint64_t counted() { return Statistics::instance().sum(HIER_STATISTIC_FAN_OUTS); }

    // In the order of a plan: block by block, from the next peer on.
    int push_all()
    {
        std::uint32_t op = 0;
        for (const Block& block : c_.blocks) {
            for (int i = 1; i <= block.peers; i++) {
                const std::size_t at = rank_.at(self_.rank()) + block.at;
                (void)rank_.transport().put({(self_.rank() + i) % self_.size(),
                                             {at, at, block.bytes},
                                             Place::receive,
                                             Place::receive,
                                             1,
                                             op++});
            }
        }
        rank_.submit();
        return static_cast<int>(op);
    }
    // The count alone says that all blocks of a peer are there.
    std::string received(std::uint64_t sequence)
    {
        for (int peer = 0; peer < self_.size(); peer++) {
            if (peer == self_.rank()) continue;
            const int distance = (self_.rank() - peer + self_.size()) % self_.size();
            std::vector<Block> from_peer;
            for (const Block& block : c_.blocks)
                if (block.peers >= distance) from_peer.push_back(block);
            const auto has_all = [&] {
                return rank_.transport().arrived(peer) == from_peer.size();
            };
            if (!await([&] { return !rank_.turn() || has_all(); }) || !has_all())
                return "not all comes";
            const Bytes wanted = content(peer, sequence, shard);
            for (const Block& block : from_peer)
                if (get(rank_.receive() + rank_.at(peer) + block.at, block.bytes) !=
                    Bytes(&wanted[block.at], &wanted[block.at] + block.bytes))
                    return "signalled before it was there";
        }
        return "";
    }

    const BlocksCase& c_;
    ForkedRank& self_;
    Rank rank_;
};

void expect_blocks(const std::vector<BlocksCase>& cases)
{
    for (const BlocksCase& c : cases) {
        const auto body = [&](ForkedRank& self) -> std::string {
            Pusher pusher(self, c);
            std::string fault;
            for (std::uint64_t sequence = 1; sequence <= 3 && fault.empty(); sequence++)
                fault = pusher.call(sequence);
            return fault.empty() ? "" : std::string(c.name) + ": " + fault;
        };
        const char* const modules = c.has_file ? HIER_TEST_KERNELS : HIER_TEST_NO_KERNELS;
        expect_no_reason(run(3, "200", body, sharing_version, modules));
    }
}

std::vector<Block> small_blocks(std::size_t count)
{
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < count; i++) blocks.push_back({i * 8 * kib, 4 * kib + 16 * i});
    return blocks;
}

void test_a_kernel_takes_all_blocks(void**)
{
    constexpr std::size_t most = gpu::FanOut::max_blocks;
    expect_blocks({
        {"one", {{0, 64 * kib}}, 1, 1},
        {"several", {{0, 4 * kib}, {64 * kib, 64 * kib}, {1024 * kib, 90000}}, 3, 1},
        {"one of them not at a multiple of 16", {{0, 4 * kib}, {4 * kib + 4, 1000}}, 2, 1},
        {"side by side, of one size", {{0, 4 * kib}, {4 * kib, 4 * kib}, {8 * kib, 4 * kib}}, 3, 1},
        {"as many as it takes", small_blocks(most), most, 1},
        {"one more", small_blocks(most + 1), most + 1, 2},
        {"more than two kernels take", small_blocks(4 * most + 1), 4 * most + 1, 5},
        {"on a single node",
         {{0, 4 * kib}, {64 * kib, 1024 * kib}},
         2,
         1,
         FanOutUse::middle_blocks},
        {"on shared GPUs", {{0, 4 * kib}, {64 * kib, 64 * kib}}, 2, 1, FanOutUse::all_blocks, true},
    });
}

// Three blocks of so many places do not fit.
void test_places_of_a_kernel(void**)
{
    constexpr std::size_t places = gpu::FanOut::max_places_in_all / 3 + 1;
    alignas(16) std::byte memory[64] = {};
    const std::vector<gpu::Copy> block(places, gpu::Copy{memory, memory + 32, 16, 1});
    gpu::FanOut kernel{};
    assert_true(is_fan_out(block, FanOutUse::chunks));
    assert_true(add_block(block, kernel));
    assert_true(add_block(block, kernel));
    assert_false(add_block(block, kernel));
    assert_int_equal(kernel.blocks, 2);
    assert_int_equal(kernel.places, 2 * places);
    assert_int_equal(kernel.block[1].first, places);
}

void test_other_blocks_go_by_copies(void**)
{
    expect_blocks({
        {"the largest chunk", {{0, largest}, {largest, largest + 16}}, 1, 1},
        {"among large ones",
         {{0, 600 * kib}, {600 * kib, 4 * kib}, {1024 * kib, 600 * kib}, {2048 * kib, 4 * kib}},
         2,
         1},
        {"to one peer", {{0, 64 * kib, 1}, {64 * kib, 64 * kib}, {128 * kib, 64 * kib, 1}}, 1, 1},
        {"not at a multiple of 4", {{2, 4 * kib}, {64 * kib, 4 * kib}}, 1, 1},
        {"in the background", {{0, 64 * kib}, {64 * kib, 64 * kib}}, 0, 0, FanOutUse::chunks, true},
        {"without kernels",
         {{0, 64 * kib}, {64 * kib, 64 * kib}},
         0,
         0,
         FanOutUse::chunks,
         false,
         false},
        {"not wanted", {{0, 64 * kib}, {64 * kib, 64 * kib}}, 0, 0, FanOutUse::never},
    });
}

// Whatever the runtime refuses, the call ends, with the right bytes or with an error.
void test_block_that_is_not_started(void**)
{
    int errors = 0;
    for (unsigned refused = 1; refused <= 24; refused++) {
        const auto ends_well = [refused](ForkedRank& self) -> std::string {
            Rank rank(self, false, shard, FanOutUse::chunks);
            if (failed(rank.begin(1)) || failed(rank.transport().announce(Op::every_peer)))
                return "begin failed";
            for (int peer = 0; peer < self.size(); peer++)
                if (peer != self.rank() && !rank.wait_for_peer(peer)) return "never ready";
            std::uint32_t op = 0;
            constexpr Block blocks[] = {{0, 4 * kib}, {8 * kib, 8 * kib}, {64 * kib, 600 * kib}};
            for (const Block& block : blocks) {
                for (int peer = 0; peer < self.size(); peer++)
                    if (peer != self.rank())
                        (void)rank.transport().put(
                            {peer,
                             {0, rank.at(self.rank()) + block.at, block.bytes},
                             Place::receive,
                             Place::receive,
                             1,
                             op++});
            }
            if (self.rank() == 0) hip_sim_fail_at(hip_sim_calls() + refused);
            rank.submit();
            hip_sim_fail_at(0);
            const bool is_done = await([&] { return !rank.turn() || rank.counter.done == 6; });
            const bool has_failed = failed(rank.status) || failed(rank.counter.worst);
            const bool is_idle = await([&] { return rank.transport().idle(); });
            rank.meet();
            rank.transport().end();
            if (!is_done || !is_idle) return "no end";
            return has_failed ? self.rank() == 0 ? "an error" : "a peer failed" : "";
        };
        const char* const said = run(3, "20", ends_well, sharing_version, HIER_TEST_KERNELS);
        if (said == nullptr) continue;
        if (strstr(said, "an error") == nullptr) expect_no_reason(said);
        errors++;
    }
    assert_in_range(errors, 1, 23);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_a_kernel_takes_all_blocks),
        cmocka_unit_test(test_places_of_a_kernel),
        cmocka_unit_test(test_other_blocks_go_by_copies),
        cmocka_unit_test(test_block_that_is_not_started),
    };
    return hier::test::run_cases(argc, argv, "fan_out_blocks", tests);
}
