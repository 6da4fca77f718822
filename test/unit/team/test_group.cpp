// SPDX-License-Identifier: BSD-3-Clause
// Exchanges among the ranks of a group. All ranks hear of the failure of one.
#include <signal.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>

#include "base/error.hpp"
#include "team/group.hpp"
#include "test/support/forked.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

std::string expect_error(const std::string& wanted, const std::function<void()>& f)
{
    try {
        f();
    } catch (const std::runtime_error& e) {
        return e.what() == wanted ? "" : std::string("the error is: ") + e.what();
    }
    return "no error";
}

void test_allgather(void**)
{
    for (int ranks = 1; ranks <= 6; ranks++) {
        expect_no_reason(keep(first_fault(run_ranks(ranks, [&](ForkedRank& self) -> std::string {
            const Group group = self.group();
            for (int round = 0; round < 100; round++) {
                const auto all = group.collect(self.rank() * 1000 + round);
                for (int r = 0; r < ranks; r++) {
                    if (all[static_cast<std::size_t>(r)] != r * 1000 + round)
                        return "a wrong value";
                }
            }
            return "";
        }))));
    }
}

// Several groups at the same time, each of some ranks in an order of its own. Now and then all
// ranks.
void test_parts_of_a_team(void**)
{
    static const std::vector<int> parts[] = {{4, 0, 2}, {3}, {1, 5}};
    expect_no_reason(keep(first_fault(run_ranks(6, [](ForkedRank& self) -> std::string {
        const auto mine = std::find_if(std::begin(parts), std::end(parts), [&](const auto& part) {
            return std::find(part.begin(), part.end(), self.rank()) != part.end();
        });
        const Group group(self.bootstrap(), *mine);
        if ((*mine)[static_cast<std::size_t>(group.rank())] != self.rank()) return "a wrong rank";
        for (int round = 0; round < 50; round++) {
            const auto all = group.collect(self.rank() * 1000 + round);
            for (std::size_t i = 0; i < mine->size(); i++) {
                if (all.size() != mine->size() || all[i] != (*mine)[i] * 1000 + round)
                    return "a wrong value";
            }
            if (round % 7 == 0 && self.group().collect(round) != std::vector<int>(6, round))
                return "a wrong value of the whole team's";
        }
        return "";
    }))));
}

std::vector<std::byte> text_of_rank(int rank, int round)
{
    return {static_cast<std::size_t>(rank == round % 4 ? 0 : rank * 170 + round),
            static_cast<std::byte>(rank + round)};
}

// Blocks of different lengths, also of length 0. Some do not fit into the first exchange. At the end
// nobody has anything.
void test_allgather_bytes(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(3, [](ForkedRank& self) -> std::string {
        const Group group = self.group();
        for (int round = 0; round < 8; round++) {
            const auto all = group.collect_bytes(text_of_rank(self.rank(), round));
            for (int r = 0; r < 3; r++) {
                if (all[static_cast<std::size_t>(r)] != text_of_rank(r, round))
                    return "wrong bytes in round " + std::to_string(round);
            }
        }
        for (const auto& none : group.collect_bytes({})) {
            if (!none.empty()) return "something out of nothing";
        }
        return "";
    }))));
}

// agree() throws a rank's own cause there, and the rank's number elsewhere. The next step finds all
// ranks.
void test_agree(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(3, [](ForkedRank& self) -> std::string {
        const Group group = self.group();
        int steps = 0;
        for (int culprit = 0; culprit < 3; culprit++) {
            const auto wanted = culprit == self.rank()
                                    ? std::string("a step: no coffee")
                                    : format("a step: rank %d of 3 failed", culprit);
            const auto fault = expect_error(wanted, [&] {
                group.agree("a step", [&] {
                    steps++;
                    if (self.rank() == culprit) throw std::runtime_error("no coffee");
                });
            });
            if (!fault.empty()) return fault;
        }
        group.agree("a good step", [&] { steps++; });
        return steps == 4 ? "" : "not every step ran once";
    }))));
}

void test_agree_without_a_cause(void**)
{
    expect_no_reason(keep(first_fault(run_ranks(2, [](ForkedRank& self) {
        return expect_error(
            self.rank() == 1 ? "a step: unknown cause" : "a step: rank 1 of 2 failed", [&] {
                self.group().agree("a step", [&] {
                    if (self.rank() == 1) throw std::runtime_error("");
                });
            });
    }))));
}

// One rank throws while the others exchange something or are in steps of a step. All leave the same
// step, and go on together.
void test_agree_ends_exchanges(void**)
{
    enum class Then { gather, large_gather, bytes, step, step_that_fails };
    for (const Then then :
         {Then::gather, Then::large_gather, Then::bytes, Then::step, Then::step_that_fails}) {
        expect_no_reason(keep(first_fault(run_ranks(5, [&](ForkedRank& self) -> std::string {
            const Group group = self.group();
            struct Large {
                std::byte bytes[17000];  // more than a failed rank takes in at once
            };
            const auto go_on = [&] {
                if (then == Then::gather) (void)group.collect(1);
                if (then == Then::large_gather) (void)group.collect(Large{});
                if (then == Then::bytes) (void)group.collect_bytes({});
                if (then == Then::step) group.agree("inner", [] {});
                if (then == Then::step_that_fails)
                    group.agree("inner", [] { throw std::runtime_error("no tea"); });
            };
            int lost = 0;
            for (const int culprit : {0, 3}) {
                const bool is_it = self.rank() == culprit;
                const auto fault = expect_error(
                    is_it ? "outer: no coffee" : format("outer: rank %d of 5 failed", culprit),
                    [&] {
                        group.agree("outer", [&] {
                            (void)group.collect(2);
                            if (is_it) throw std::runtime_error("no coffee");
                            try {
                                go_on();
                            } catch (const SetupError&) {  // the failure belongs to the outer step
                                lost++;
                            }
                            (void)group.collect(3);
                        });
                    });
                if (!fault.empty()) return fault;
            }
            if (group.collect(self.rank()) != std::vector{0, 1, 2, 3, 4}) return "out of step";
            return lost == 0 ? "" : "taken for the inner step's failure";
        }))));
    }
}

int refusals = 0;
int refuse(void*, const void*, std::size_t, int, void*, std::size_t, int)
{
    refusals++;
    return 17;
}

void test_failing_exchange(void**)
{
    const Group group(hier_bootstrap{nullptr, 0, 2, refuse, nullptr, nullptr});
    const auto fault = expect_error("an exchange among 2 ranks failed with code 17",
                                    [&] { (void)group.collect(1); });
    expect_no_reason(keep(fault));
    // The rank starts no other exchange, because nobody knows what the others are doing.
    refusals = 0;
    expect_no_reason(keep(expect_error("an exchange among 2 ranks failed with code 17", [&] {
        group.agree("outer", [&] { group.agree("inner", [&] { (void)group.collect(1); }); });
    })));
    assert_true(refusals == 1);
}

// The peer does something else and has sent a message that is not ours.
int bring_zeros(void*, const void*, std::size_t, int, void* in, std::size_t in_bytes, int)
{
    std::memset(in, 0, in_bytes);
    return 0;
}

void test_another_message(void**)
{
    const Group group(hier_bootstrap{nullptr, 0, 2, bring_zeros, nullptr, nullptr});
    expect_no_reason(
        keep(expect_error("rank 1 does something else", [&] { (void)group.collect(1); })));
}

// Ranks that are absent take part in nothing, as in a process that lacks the component. All others
// hear of them.
struct Absence {
    const hier_bootstrap& real;
    unsigned absent;  // a bit for each rank
    int asked = 0;
    static int is_present(void* context, int rank)
    {
        auto& self = *static_cast<Absence*>(context);
        self.asked++;
        return (self.absent >> rank & 1) == 0 ? 1 : 0;
    }
    static int run(void* context, const void* out, std::size_t out_bytes, int to, void* in,
                   std::size_t in_bytes, int from)
    {
        auto& self = *static_cast<Absence*>(context);
        for (const int rank : {to, from}) {
            if (rank >= 0 && (self.absent >> rank & 1) != 0) return 99;
        }
        return self.real.exchange(self.real.context, out, out_bytes, to, in, in_bytes, from);
    }
    hier_bootstrap bootstrap()
    {
        hier_bootstrap made = real;
        made.context = this;
        made.exchange = run;
        made.is_present = is_present;
        return made;
    }
};

std::string meet(ForkedRank& self, unsigned absent)
{
    if ((absent >> self.rank() & 1) != 0) return "";
    Absence absence{self.bootstrap(), absent};
    const Group group(absence.bootstrap());
    std::string end = "present";
    try {
        group.agree("", [&] {
            group.require_presence();
            (void)group.collect(1);
        });
    } catch (const KnownFailure&) {
        end = "absent";
    }
    const int partners =
        2 * static_cast<int>(std::bit_width(static_cast<unsigned>(self.size() - 1)));
    if (absence.asked != partners) return "it asks for " + std::to_string(absence.asked);
    return end == (absent == 0 ? "present" : "absent") ? "" : "it takes the others for " + end;
}

void test_absent_ranks(void**)
{
    for (int ranks = 2; ranks <= 6; ranks++) {
        for (unsigned absent = 0; absent < 1U << ranks; absent += ranks < 6 ? 1 : 5)
            expect_no_reason(keep(first_fault(
                run_ranks(ranks, [&](ForkedRank& self) { return meet(self, absent); }))));
    }
}

// A message that begins as ours do: a mark, a level, two more numbers, and then a length.
template <std::int32_t level, std::uint64_t length>
int bring(void*, const void*, std::size_t, int, void* in, std::size_t in_bytes, int)
{
    constexpr std::int32_t head[] = {0x48494552, level, 0, 0};
    const std::uint64_t bytes = length;
    std::memset(in, 0, in_bytes);
    std::memcpy(in, head, sizeof head);
    if (in_bytes >= sizeof head + sizeof bytes)
        std::memcpy(static_cast<std::byte*>(in) + sizeof head, &bytes, sizeof bytes);
    return 0;
}

void test_a_vote_of_no_level(void**)
{
    const Group group(hier_bootstrap{nullptr, 0, 2, bring<0, 8>, nullptr, nullptr});
    expect_no_reason(
        keep(expect_error("rank 1 does something else", [&] { (void)group.collect(1); })));
}

void test_a_length_of_no_message(void**)
{
    const Group group(
        hier_bootstrap{nullptr, 0, 2, bring<0x7fffffff, 1ull << 40>, nullptr, nullptr});
    expect_no_reason(keep(expect_error("rank 1 of 2 sends 1099511627776 bytes in one message",
                                       [&] { (void)group.collect_bytes({std::byte{1}}); })));
}

// A test of the tests' tools: a rank that hangs or dies counts as a failure.
void test_forked_ranks_that_do_not_end_well(void**)
{
    const Ends ends = run_ranks(3, [](ForkedRank& self) -> std::string {
        if (self.rank() == 0) return "this reason";
        if (self.rank() == 1) raise(SIGKILL);
        throw std::runtime_error("thrown");
    });
    const bool is_told = ends == Ends{"this reason", "killed by signal 9", "exception: thrown"};
    assert_true(is_told);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_allgather),
        cmocka_unit_test(test_parts_of_a_team),
        cmocka_unit_test(test_allgather_bytes),
        cmocka_unit_test(test_agree),
        cmocka_unit_test(test_agree_without_a_cause),
        cmocka_unit_test(test_agree_ends_exchanges),
        cmocka_unit_test(test_failing_exchange),
        cmocka_unit_test(test_another_message),
        cmocka_unit_test(test_a_vote_of_no_level),
        cmocka_unit_test(test_a_length_of_no_message),
        cmocka_unit_test(test_absent_ranks),
        cmocka_unit_test(test_forked_ranks_that_do_not_end_well),
    };
    return hier::test::run_cases(argc, argv, "group", tests);
}
