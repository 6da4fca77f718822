// SPDX-License-Identifier: BSD-3-Clause
// The paths of host memory inside a node, between processes. Every byte arrives where it belongs,
// in any order and size. Puts that cannot be right are refused.
#include <signal.h>
#include <unistd.h>

#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "node/node_paths.hpp"
#include "test/support/forked.hpp"
#include "test/support/node_traffic.hpp"
#include "test/support/wrapped/system.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr int all_of_them[] = {HIER_INTRA_CMA, HIER_INTRA_SHM, HIER_INTRA_AUTO};
constexpr std::size_t cell = 64 << 10;

// ---- bytes

struct Load {
    std::size_t extents;
    std::vector<std::size_t> sizes;
};

const Load loads[] = {
    // Sizes around that of a cell.
    {3, {1, 7, 4096, cell - 1, cell, cell + 1, 2 * cell + 3}},
    // More tiny puts than a queue has entries.
    {60, {1, 2, 3, 100}},
    // More bytes than all cells hold.
    {3, {5 * cell + 11, 3 * cell}},
    // Puts that CMA writes in parts.
    {4, {1 << 20, (1 << 20) + 1, (5 << 19) + 3}},
    // Sizes around the limit for cells, if both ways are open.
    {6, {100, PathChoice::max_through_cells, PathChoice::max_through_cells + 1, 3 * cell}}};

std::string make_calls(ForkedRank& self, NodeTransport& transport, int rounds)
{
    std::uint64_t sequence = 0;
    for (int round = 0; round < rounds; round++) {
        for (const auto& load : loads) {
            const auto seed = ++sequence;
            Traffic traffic = make_traffic(seed, self.size(), load.extents, load.sizes);
            traffic.are_displaced = round % 3 == 1;
            const auto fault = run_traffic(transport, self, traffic, sequence);
            if (!fault.empty()) return "call " + std::to_string(sequence) + ": " + fault;
        }
    }
    return "";
}

std::string make_calls(ForkedRank& self, int intra)
{
    return make_calls(self, *make_transport(self, intra), 3);
}

// As on a node of many ranks: words of several ranks in one cache line, and small cells.
void test_packed_words(void**)
{
    for (const bool has_cma : {false, true}) {
        expect_no_reason(keep(first_fault(run_ranks(4, [&](ForkedRank& self) {
            return make_calls(self, *make_packed_transport(self, has_cma), 2);
        }))));
    }
}

void test_random_traffic(void**)
{
    for (const int intra : all_of_them) {
        for (int ranks = 2; ranks <= 5; ranks++) {
            expect_no_reason(keep(first_fault(
                run_ranks(ranks, [&](ForkedRank& self) { return make_calls(self, intra); }))));
        }
    }
}

void test_writes_that_end_early(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) {
        writev_mode = Writev::interrupted;
        return make_calls(self, HIER_INTRA_CMA);
    }))));
}

// ---- refusals

struct Ignore final : Completions {
    void complete(std::uint32_t, Status status) override { last = status; }
    Status last = Status::in_progress;
};

// Begins a call on `buffer`, and waits for all peers. Returns the status of the last look at a
// peer.
Status enter(Transport& transport, const ForkedRank& self, std::vector<std::byte>& buffer)
{
    const Region all{buffer.data(), buffer.size()};
    Binding binding{1, all, all};
    binding.total = buffer.size();
    if (failed(transport.begin(binding)) || failed(transport.announce(Op::every_peer)))
        return Status::bad_argument;
    Status status = Status::in_progress;
    for (int peer = 0; peer < self.size() && !failed(status); peer++) {
        if (peer == self.rank()) continue;
        (void)await([&] { return (status = transport.announced(peer)) != Status::in_progress; });
    }
    return status;
}

// Rank 0 puts a slice to rank 1 that does not fit there. Either side may refuse it. No byte may be
// written.
std::string put_beyond(ForkedRank& self, int intra, Slice slice)
{
    const Group group = self.group();
    const auto transport = make_transport(self, intra);
    std::vector<std::byte> buffer(512);  // the memory goes on behind the receive buffer
    const Region all{buffer.data(), 256};
    if (failed(transport->begin({1, all, all})) || failed(transport->announce(Op::every_peer)))
        return "begin failed";
    (void)await([&] { return transport->announced(1 - self.rank()) == Status::ok; });
    int is_refused = 0;
    Ignore ignore;
    if (self.rank() == 0 &&
        failed(transport->put({1, slice, Place::receive, Place::receive, 1, 0})))
        is_refused = 1;
    for (int turn = 0; turn < 20; turn++) {
        if (failed(transport->progress(ignore)) || failed(ignore.last)) is_refused = 1;
        const auto refused = group.collect(is_refused);
        if (refused[0] != 0 || refused[1] != 0) return "";
    }
    return "nobody refused it";
}

void test_put_beyond_the_end(void**)
{
    for (const int intra : all_of_them) {
        for (const Slice slice : {Slice{255, 255, 2}, Slice{256, 256, 1}, Slice{0, 0, 257}}) {
            const auto fault = first_fault(
                run_ranks(2, [&](ForkedRank& self) { return put_beyond(self, intra, slice); }));
            expect_no_reason(keep(fault.empty()
                                      ? ""
                                      : std::string(intra == HIER_INTRA_CMA   ? "CMA, "
                                                    : intra == HIER_INTRA_SHM ? "shared memory, "
                                                                              : "either, ") +
                                            fault));
        }
    }
}

void test_mismatch(void**)
{
    for (const int intra : all_of_them) {
        expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) -> std::string {
            const auto transport = make_transport(self, intra);
            std::vector<std::byte> buffer(self.rank() == 2 ? 101u : 100u);
            const Status status = enter(*transport, self, buffer);
            (void)self.group().collect(0);
            if (status != Status::mismatch) return to_string(status);
            return ForkedRank::is_logged("ranks disagree on the size of a call")
                       ? ""
                       : "it does not say why";
        }))));
    }
}

// ---- failures

void test_a_raised_failure_is_seen_by_all(void**)
{
    for (const int intra : all_of_them) {
        for (int culprit = 0; culprit < 3; culprit++) {
            expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) -> std::string {
                const auto transport = make_transport(self, intra);
                std::vector<std::byte> buffer(100);
                Ignore ignore;
                if (enter(*transport, self, buffer) != Status::ok) return "not ready";
                if (transport->progress(ignore) != Status::ok)
                    return "an error before there is one";
                (void)self.group().collect(0);
                if (self.rank() == culprit) {
                    transport->raise(Status::transport_error);
                    return transport->progress(ignore) == Status::ok ? ""
                                                                     : "it hears of its own error";
                }
                return await([&] { return transport->progress(ignore) == Status::peer_failed; })
                           ? ""
                           : "it never hears of it";
            }))));
        }
    }
}

// Only with CMA does a rank write into another rank's buffer. So only then a rank that fails has to
// wait.
void test_who_may_write_after_a_failure(void**)
{
    for (const int intra : all_of_them) {
        expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
            const auto transport = make_transport(self, intra);
            std::vector<std::byte> buffer(100);
            if (enter(*transport, self, buffer) != Status::ok) return "not ready";
            (void)self.group().collect(0);
            transport->raise(Status::transport_error);
            if (transport->may_write(1 - self.rank(), 1) != (intra != HIER_INTRA_SHM))
                return intra == HIER_INTRA_SHM ? "it waits for whoever takes from cells"
                                               : "it waits for nobody";
            (void)self.group().collect(0);
            return "";
        }))));
    }
}

// Only a copy into a process's memory shows that the process is gone. Shared memory stays.
void test_dead_peer(void**)
{
    const Ends ends = run_ranks(3, [&](ForkedRank& self) -> std::string {
        const auto transport = make_transport(self, HIER_INTRA_CMA);
        std::vector<std::byte> buffer(100);
        if (enter(*transport, self, buffer) != Status::ok) return "not ready";
        (void)self.group().collect(0);
        if (self.rank() == 2) raise(SIGKILL);
        Status status = Status::ok;
        if (!await([&] {
                return failed(
                    status = transport->put({2, {0, 0, 50}, Place::receive, Place::receive, 1, 0}));
            }))
            return "puts to a dead process succeed";
        if (status != Status::transport_error) return to_string(status);
        return ForkedRank::is_logged("process_vm_writev of 50 bytes to node rank 2")
                   ? ""
                   : "it does not say why";
    });
    const bool is_right = ends == Ends{"", "", "killed by signal 9"};
    expect_no_reason(is_right ? nullptr : keep(first_fault(ends)));
}

// ---- peers that are ahead

// The words of a slot that both say `call`: `ready`, and behind it `entered`.
std::uint64_t* find_ready(std::uint64_t call)
{
    for (const std::span<std::uint64_t> words : shared_memory()) {
        for (std::size_t i = 0; i + 1 < words.size(); i++)
            if (words[i] == call && words[i + 1] == call) return &words[i];
    }
    return nullptr;
}

// A rank that puts nothing waits for announcements all the same. A peer may have ended the call by
// then, and be half-way through its next announcement: the buffer is told, `ready` is not.
void test_peer_that_is_ahead(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) -> std::string {
        constexpr std::uint64_t call = 0x5a17'0001;
        const auto transport = make_transport(self, HIER_INTRA_CMA);
        std::vector<std::byte> buffer(300);
        const auto enter = [&](std::uint64_t sequence, std::size_t total) {
            Binding binding{sequence, {buffer.data(), 100}, {buffer.data(), total}};
            binding.total = total;
            return !failed(transport->begin(binding)) &&
                   !failed(transport->announce(Op::every_peer));
        };
        const auto meet = [&] { (void)self.group().collect(0); };
        if (!enter(call, 100)) return "begin failed";
        meet();
        if (self.rank() == 0) {
            transport->end();
            if (!enter(call + 1, 300)) return "the next begin failed";
            std::uint64_t* const ready = find_ready(call + 1);
            if (ready == nullptr) return "no slot";
            *ready = call;
            meet();
            meet();
            *ready = call + 1;
            meet();
            meet();
            return "";
        }
        meet();
        if (transport->announced(0) != Status::ok) return "half-way: not ready";
        meet();
        meet();
        if (transport->announced(0) != Status::ok) return "ahead: not ready";
        transport->end();
        const bool is_ready = enter(call + 1, 300) && transport->announced(0) == Status::ok;
        meet();
        return is_ready ? "" : "in the next call: not ready";
    }))));
}

// It does not want the bytes of a rank that is a call behind. Such a rank has other counts.
void test_put_to_a_peer_that_is_ahead(void**)
{
    for (const int intra : {HIER_INTRA_CMA, HIER_INTRA_AUTO}) {
        expect_no_reason(keep(first_fault(run_ranks(2, [&](ForkedRank& self) -> std::string {
            const auto transport = make_transport(self, intra);
            std::vector<std::byte> buffer(100000);
            Binding binding{1, {buffer.data(), 50000}, {buffer.data(), buffer.size()}};
            binding.total = buffer.size();
            (void)transport->begin(binding);
            if (self.rank() == 0) {
                transport->end();
                binding.sequence = 2;
                (void)transport->begin(binding);
                (void)transport->announce(Op::every_peer);
            }
            (void)self.group().collect(0);
            if (self.rank() == 0) return "";
            const Slice slice{0, 0, 50000};
            if (transport->announced(0) != Status::ok) return "not ready";
            const Status status = transport->put({0, slice, Place::send, Place::receive, 1, 0});
            return status == Status::mismatch ? "" : "it is put all the same";
        }))));
    }
}

// ---- signs of life

void test_heartbeats(void**)
{
    for (const int intra : all_of_them) {
        expect_no_reason(keep(first_fault(run_ranks(3, [&](ForkedRank& self) -> std::string {
            const Group group = self.group();
            const auto transport = make_transport(self, intra);
            std::vector<std::byte> buffer(10);
            if (enter(*transport, self, buffer) != Status::ok) return "not ready";
            if (transport->heard() != 0) return "it hears what nobody has told";
            (void)group.collect(0);
            if (self.rank() == 1) transport->tell(7);
            if (self.rank() == 2) transport->tell(4);
            (void)group.collect(0);
            const std::uint32_t wanted =
                self.rank() == 1 ? 4 : 7;  // the highest heartbeat of the others
            if (transport->heard() != wanted) return "heard " + std::to_string(transport->heard());
            transport->end();
            const Region all{buffer.data(), buffer.size()};
            if (failed(transport->begin({2, all, all}))) return "begin failed";
            return transport->heard() == 0 ? "" : "it hears what was told in the last call";
        }))));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_random_traffic),
        cmocka_unit_test(test_packed_words),
        cmocka_unit_test(test_writes_that_end_early),
        cmocka_unit_test(test_put_beyond_the_end),
        cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_a_raised_failure_is_seen_by_all),
        cmocka_unit_test(test_who_may_write_after_a_failure),
        cmocka_unit_test(test_dead_peer),
        cmocka_unit_test(test_peer_that_is_ahead),
        cmocka_unit_test(test_put_to_a_peer_that_is_ahead),
        cmocka_unit_test(test_heartbeats),
    };
    return hier::test::run_cases(argc, argv, "node_transport", tests);
}
