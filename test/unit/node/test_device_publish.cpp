// SPDX-License-Identifier: BSD-3-Clause
// Published blocks of ranks that share a GPU: any mix of memory, any order of blocks, copies that
// fail, ranks that disagree.
#include "test/support/publisher.hpp"

namespace {

using namespace hier;
using namespace hier::test;

void test_two_copies_whatever_the_ranks(void**)
{
    for (const int ranks : {2, 5}) {
        expect_no_reason(run_on_one_device(ranks, [](ForkedRank& self) -> std::string {
            Publisher rank(self, self.rank(), {});
            std::string wrong = calls(rank, 4);
            if (!wrong.empty()) return wrong;
            const std::uint64_t before = hip_sim_copies();
            if (failed(rank.start(5, rank.total()))) return "cannot start";
            if (rank.finish() != Status::ok) return "not finished";
            const std::uint64_t copies = hip_sim_copies() - before;
            rank.transport().end();
            return copies == 2 ? rank.fault(5) : std::to_string(copies) + " copies";
        }));
    }
}

// Each rank has another kind of memory, in every turn.
void test_any_memory(void**)
{
    constexpr Memory kinds[] = {{true, true, false},   {false, true, false}, {true, false, false},
                                {false, false, false}, {true, true, true},   {false, false, true}};
    for (std::size_t turn = 0; turn < std::size(kinds); turn++) {
        expect_no_reason(run_on_one_device(4, [&](ForkedRank& self) -> std::string {
            const auto kind = (turn + static_cast<std::size_t>(self.rank())) % std::size(kinds);
            Publisher rank(self, self.rank(), kinds[kind]);
            return calls(rank, 3);
        }));
    }
}

// The places of the blocks rise, fall, and jump.
void test_any_order(void**)
{
    constexpr int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 3, 2}, {0, 2, 3, 1}};
    for (const auto& order : orders) {
        expect_no_reason(run_on_one_device(4, [&](ForkedRank& self) -> std::string {
            Publisher rank(self, order[self.rank()], {});
            return calls(rank, 3);
        }));
    }
}

// The CPU would have to copy it.
void test_no_exchange_of_device_memory(void**)
{
    expect_no_reason(run_on_one_device(2, [](ForkedRank& self) -> std::string {
        Publisher rank(self, self.rank(), {.in_place = true});
        for (std::uint64_t sequence = 1; sequence < 4; sequence++) {
            if (rank.exchange(sequence, 1000) != Status::in_progress) return "it is exchanged";
            rank.meet();
            const std::string wrong = rank.call(sequence);
            if (!wrong.empty()) return wrong;
        }
        return "";
    }));
}

constexpr unsigned endless = 1U << 30;

// `body` runs on two ranks, with kernels and without. The second one has its buffer on the device, or both do not.
void expect_of_host(bool has_device, std::string (*body)(Publisher& rank, bool is_on_device))
{
    for (const bool has_kernels : {false, true}) {
        const auto in_process = [&](ForkedRank& self) -> std::string {
            gives_success(hipSetDevice(0), "hipSetDevice");
            const bool is_on_device = has_device && self.rank() == 1;
            Publisher rank(self, self.rank(),
                           {.send_on_device = is_on_device,
                            .receive_on_device = is_on_device,
                            .in_place = true,
                            .has_kernels = has_kernels});
            return body(rank, is_on_device);
        };
        expect_no_reason(run(2, "200", in_process, sharing_version,
                             has_kernels ? HIER_TEST_KERNELS : HIER_TEST_NO_KERNELS));
    }
}

std::string exchanged(Publisher& rank, std::uint64_t sequence)
{
    return rank.exchange(sequence, endless) == Status::ok ? rank.fault(sequence) : "not exchanged";
}

void test_exchange_of_host_memory(void**)
{
    expect_of_host(false, [](Publisher& rank, bool) -> std::string {
        for (std::uint64_t sequence = 1; sequence < 5; sequence++) {
            const std::string wrong = exchanged(rank, sequence);
            if (!wrong.empty()) return wrong;
        }
        return "";
    });
}

// The rank with host memory ends its call in its start. The other one copies.
void test_exchange_with_a_device(void**)
{
    expect_of_host(true, [](Publisher& rank, bool is_on_device) -> std::string {
        for (std::uint64_t sequence = 1; sequence < 5; sequence++) {
            if (is_on_device && rank.exchange(sequence, endless) != Status::in_progress)
                return "exchanged";
            const std::string wrong =
                is_on_device ? rank.call(sequence) : exchanged(rank, sequence);
            if (!wrong.empty()) return wrong;
        }
        return "";
    });
}

// It looks in vain, and its call goes on as any other one.
void test_exchange_before_the_device_comes(void**)
{
    expect_of_host(true, [](Publisher& rank, bool is_on_device) -> std::string {
        for (std::uint64_t sequence = 1; sequence < 5; sequence++) {
            if (!is_on_device && rank.exchange(sequence, 100) != Status::in_progress)
                return "exchanged with nobody";
            rank.meet();
            const std::string wrong = rank.call(sequence);
            if (!wrong.empty()) return wrong;
        }
        return "";
    });
}

// A copy out of the device fails on rank 1, or the copy into it. Rank 1 gets an error and tells it.
void test_failing_copies(void**)
{
    for (const std::uint64_t nth : {1U, 2U}) {
        expect_no_reason(run_on_one_device(2, [&](ForkedRank& self) -> std::string {
            Publisher rank(self, self.rank(), {});
            const std::string wrong = calls(rank, 2);
            if (!wrong.empty()) return wrong;
            rank.meet();  // a failure would end the call before, too
            if (self.rank() == 1) hip_sim_fail_copy_at(hip_sim_copies() + nth);
            Status status = rank.start(3, rank.total());
            if (!failed(status)) status = rank.finish();
            if (failed(status)) rank.transport().raise(status);
            const bool is_idle = await([&] { return rank.transport().idle(); });
            rank.transport().end();
            rank.meet();
            if (!is_idle) return "copies go on";
            if (self.rank() == 1) return status == Status::transport_error ? "" : "no error";
            if (nth == 2 && status == Status::ok) return rank.fault(3);
            return status == Status::peer_failed ? "" : "not told";
        }));
    }
}

void test_ranks_that_disagree(void**)
{
    expect_no_reason(run_on_one_device(2, [](ForkedRank& self) -> std::string {
        Publisher rank(self, self.rank(), {});
        const auto more = static_cast<std::size_t>(self.rank());
        if (failed(rank.start(1, rank.total() + more))) return "cannot start";
        const Status status = rank.finish();
        if (failed(status)) rank.transport().raise(status);
        rank.meet();
        return status == Status::mismatch || status == Status::peer_failed ? "" : "not noticed";
    }));
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_two_copies_whatever_the_ranks),
        cmocka_unit_test(test_any_memory),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_no_exchange_of_device_memory),
        cmocka_unit_test(test_exchange_of_host_memory),
        cmocka_unit_test(test_exchange_with_a_device),
        cmocka_unit_test(test_exchange_before_the_device_comes),
        cmocka_unit_test(test_failing_copies),
        cmocka_unit_test(test_ranks_that_disagree),
    };
    return hier::test::run_cases(argc, argv, "device_publish", tests);
}
