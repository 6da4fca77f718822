// SPDX-License-Identifier: BSD-3-Clause
// A rank of the node has gone mad: it fills all memory that the ranks share with random bytes. The
// other rank may fail its calls, but lives on and touches no memory of its own but its buffers.
#include <random>
#include <span>
#include <string>
#include <vector>

#include "node/node_transport.hpp"
#include "test/support/forked.hpp"
#include "test/support/node_traffic.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t shard = 20000;
constexpr std::byte untouched{0x5a};

struct Ignore final : Completions {
    void complete(std::uint32_t, Status) override {}
};

// Few bits are set in many words, so that some are almost right.
void scribble(std::mt19937_64& random)
{
    for (const std::span<std::uint64_t> words : shared_memory()) {
        for (std::uint64_t& word : words) word = random() >> random() % 64;
    }
}

// The receive buffer, with bytes on both sides that nobody may touch.
class Buffer {
public:
    Buffer() : all_(2 * shard + 2 * margin, untouched) {}
    Region region() { return {all_.data() + margin, 2 * shard}; }
    bool is_kept() const
    {
        for (std::size_t i = 0; i < margin; i++) {
            if (all_[i] != untouched || all_[all_.size() - 1 - i] != untouched) return false;
        }
        return true;
    }

private:
    static constexpr std::size_t margin = 4096;
    std::vector<std::byte> all_;
};

// Whatever the calls return, they return.
void call(Transport& transport, Buffer& receive, std::uint64_t sequence, bool publish,
          std::size_t bytes)
{
    constexpr int passes = 20;
    static std::vector<std::byte> send(shard);
    Ignore ignore;
    Binding binding{sequence, {send.data(), shard}, receive.region()};
    binding.publish = publish;
    if (failed(transport.begin(binding))) return transport.end();
    if (!publish) (void)transport.announce(Op::every_peer);
    for (int i = 0; i < passes; i++) {
        if (i == 0) (void)transport.put({0, {0, 0, bytes}, Place::send, Place::receive, 1, 0});
        (void)transport.progress(ignore);
        (void)transport.announced(0);
        (void)transport.entered(0);
        (void)transport.arrived(0);
        (void)transport.heard();
        (void)transport.may_write(0, 1);
    }
    transport.end();
}

enum class Blocks { put, published, lent };

const char* run(Blocks blocks)
{
    const bool publish = blocks != Blocks::put;
    return keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
        constexpr std::uint64_t calls = 100;
        const Group group = self.group();
        const auto transport = blocks == Blocks::lent ? make_whole_transport(self)
                                                      : make_transport(self, HIER_INTRA_SHM);
        const std::size_t bytes = blocks == Blocks::lent ? shard : 100;
        const bool is_mad = self.rank() == 0;
        std::mt19937_64 random(static_cast<unsigned>(blocks));
        Buffer receive;
        for (std::uint64_t sequence = 1; sequence <= calls; sequence++) {
            if (is_mad) scribble(random);
            (void)group.collect(0);
            if (!is_mad) call(*transport, receive, sequence, publish, bytes);
            if (!receive.is_kept()) return "bytes beside the receive buffer";
            (void)group.collect(0);
        }
        return "";
    })));
}

void test_cells(void**) { expect_no_reason(run(Blocks::put)); }
void test_published(void**) { expect_no_reason(run(Blocks::published)); }
void test_lent(void**) { expect_no_reason(run(Blocks::lent)); }

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_lent),
    };
    return hier::test::run_cases(argc, argv, "scribbled_memory", tests);
}
