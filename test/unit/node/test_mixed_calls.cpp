// SPDX-License-Identifier: BSD-3-Clause
// Small calls on a node with GPUs that publishes no device memory: ranks with host memory publish, the others announce.
#include <chrono>
#include <random>
#include <string>
#include <thread>

#include "coll/allgather/plan.hpp"
#include "exec/executor.hpp"
#include "test/support/engine_rank.hpp"

namespace {

using namespace hier;
using namespace hier::test;

struct Kind {
    bool send_on_device, receive_on_device, in_place, is_displaced;
    bool is_on_device() const { return receive_on_device || (!in_place && send_on_device); }
};
constexpr Kind host{false, false, false, false}, device{true, true, false, false};
constexpr Kind kinds[] = {host,
                          device,
                          {false, false, true, false},
                          {true, true, true, false},
                          {true, false, false, false},
                          {false, true, false, false},
                          {false, false, false, true},
                          {true, true, false, true}};

constexpr std::size_t largest = 16 << 10;

// A rank that makes whole calls. Each rank has a device of its own.
class MixedRank {
public:
    explicit MixedRank(ForkedRank& self, std::chrono::seconds timeout = std::chrono::seconds(60))
        : self_(self), group_(self.group()),
          topology_(std::vector<int>(static_cast<std::size_t>(self.size()), 0)),
          transport_(make_node_transport(group_,
                                         {.processes = group_.collect(own_cma_target()),
                                          .team = self.size(),
                                          .have_devices = true},
                                         HIER_INTRA_AUTO)),
          executor_(transport_.get(), nullptr, limits(timeout))
    {
        const std::size_t bytes = 2 * largest * static_cast<std::size_t>(self.size());
        on_device_ = {device_memory(largest), device_memory(bytes)};
        on_host_ = {new std::byte[largest], new std::byte[bytes]};
    }

    // `sizes`: of the blocks, by rank.
    Status start(std::uint64_t sequence, const Kind& kind, const std::vector<std::size_t>& sizes)
    {
        sequence_ = sequence;
        shards_.clear();
        places_.clear();
        std::size_t end = 0;
        for (const std::size_t size : sizes) {
            shards_.push_back({end, size});
            // Displaced blocks lie backwards, with gaps.
            places_.push_back(kind.is_displaced ? room() - end - size - 7 * places_.size() : end);
            end += size;
        }
        const auto me = static_cast<std::size_t>(self_.rank());
        receive_ = (kind.receive_on_device ? on_device_ : on_host_).receive;
        std::byte* const own = receive_ + places_[me];
        std::byte* const send =
            kind.in_place ? own : (kind.send_on_device ? on_device_ : on_host_).send;
        put(receive_, Bytes(room(), 0xee));
        put(send, content(self_.rank(), sequence, sizes[me]));
        program_.emplace(plan_allgather(topology_, self_.rank(),
                                        {.shards = shards_,
                                         .chunk = largest,
                                         .route = Route::direct,
                                         .in_place = kind.in_place,
                                         .bounce = false,
                                         .publish = !kind.is_on_device(),
                                         .own_whole = true}),
                         topology_, self_.rank());
        Binding binding{};
        binding.sequence = sequence;
        binding.send = {send, sizes[me]};
        binding.receive = {receive_, room()};
        const bool sends_from_device = kind.in_place ? kind.receive_on_device : kind.send_on_device;
        if (sends_from_device) binding.send.memory = allocation_of(send);
        if (kind.receive_on_device) binding.receive.memory = allocation_of(receive_);
        binding.publish = !kind.is_on_device();
        binding.is_mixed = true;
        binding.total = end;
        binding.hash = CallShape::hash(shards_);
        binding.homes = BlockHomes(shards_, 0);
        if (kind.is_displaced) binding.displacements = places_;
        return executor_.start(*program_, binding);
    }
    Status finish()
    {
        Status status = Status::in_progress;
        (void)await([&] { return (status = executor_.progress()) != Status::in_progress; });
        return status;
    }
    std::string fault() const
    {
        const Bytes got = get(receive_, room());
        Bytes expected(room(), 0xee);
        for (std::size_t r = 0; r < shards_.size(); r++) {
            const Bytes bytes = content(static_cast<int>(r), sequence_, shards_[r].length);
            std::copy(bytes.begin(), bytes.end(),
                      expected.begin() + static_cast<std::ptrdiff_t>(places_[r]));
        }
        return got == expected ? "" : "call " + std::to_string(sequence_) + ": wrong bytes";
    }
    std::string call(std::uint64_t sequence, const Kind& kind,
                     const std::vector<std::size_t>& sizes)
    {
        Status status = start(sequence, kind, sizes);
        if (status == Status::in_progress) status = finish();
        if (status != Status::ok)
            return "call " + std::to_string(sequence) + ": " + to_string(status);
        return fault();
    }
    std::vector<std::size_t> all(std::size_t bytes) const
    {
        return std::vector<std::size_t>(static_cast<std::size_t>(self_.size()), bytes);
    }
    Executor& executor() { return executor_; }
    Transport& transport() { return *transport_; }
    void meet() { (void)group_.collect(0); }

private:
    struct Buffers {
        std::byte *send, *receive;
    };
    static Executor::Limits limits(std::chrono::seconds timeout)
    {
        return {.watchdog = {.timeout = timeout, .fails = true}, .drain = std::chrono::seconds(1)};
    }
    std::size_t room() const { return 2 * largest * static_cast<std::size_t>(self_.size()); }

    ForkedRank& self_;
    Group group_;
    Topology topology_;
    std::unique_ptr<NodeTransport> transport_;
    Executor executor_;
    Buffers on_device_{}, on_host_{};
    std::uint64_t sequence_ = 0;
    std::vector<Extent> shards_;
    std::vector<std::size_t> places_;  // in this rank's receive buffer
    std::byte* receive_ = nullptr;
    std::optional<Program> program_;
};

// Equal on all ranks: the kinds of memory and the sizes of one call.
struct Draw {
    std::vector<Kind> kinds;
    std::vector<std::size_t> sizes;

    Draw(std::mt19937& random, int ranks)
    {
        const auto of = [&](std::size_t count) { return random() % count; };
        const bool are_equal = of(2) == 0;
        const std::size_t equal = 1 + of(largest);
        // Calls of one kind alone are as frequent as any others.
        const std::size_t choice = of(3);
        for (int rank = 0; rank < ranks; rank++) {
            this->kinds.push_back(choice == 0   ? host
                                  : choice == 1 ? (of(2) == 0 ? host : device)
                                                : ::kinds[of(std::size(::kinds))]);
            const std::size_t size = of(4) == 0 ? 0 : 1 + of(of(2) == 0 ? 100 : largest);
            sizes.push_back(are_equal ? equal : size);
        }
    }
};

// Calls back to back, with any kind of memory on each rank, and ranks that come late.
void test_any_memory(void**)
{
    for (int ranks = 2; ranks <= 4; ranks++) {
        expect_no_reason(run(ranks, "50", [](ForkedRank& self) -> std::string {
            MixedRank rank(self);
            std::mt19937 random(7), own(static_cast<unsigned>(self.rank()));
            std::string wrong;
            for (std::uint64_t sequence = 1; sequence <= 300 && wrong.empty(); sequence++) {
                const Draw draw(random, self.size());
                if (own() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
                wrong = rank.call(sequence, draw.kinds[static_cast<std::size_t>(self.rank())],
                                  draw.sizes);
            }
            return wrong;
        }));
    }
}

// Each pair of kinds, for some calls in a row, so that both halves serve.
void test_each_pair(void**)
{
    expect_no_reason(run(2, "20", [](ForkedRank& self) -> std::string {
        MixedRank rank(self);
        std::uint64_t sequence = 0;
        for (const Kind& first : kinds) {
            for (const Kind& second : kinds) {
                for (const std::size_t bytes : {std::size_t{1}, std::size_t{33}, largest}) {
                    const Kind& own = self.rank() == 0 ? first : second;
                    const std::string wrong = rank.call(++sequence, own, rank.all(bytes));
                    if (!wrong.empty()) return wrong;
                }
            }
        }
        return "";
    }));
}

// Host memory alone takes no copies of the device.
void test_no_copies_for_host_memory(void**)
{
    expect_no_reason(run(3, "200", [](ForkedRank& self) -> std::string {
        MixedRank rank(self);
        const std::uint64_t before = hip_sim_copies();
        for (std::uint64_t sequence = 1; sequence < 20; sequence++) {
            const std::string wrong = rank.call(sequence, host, rank.all(100));
            if (!wrong.empty()) return wrong;
        }
        return hip_sim_copies() == before ? "" : "copies by the device";
    }));
}

// Rank 1 has no block, and makes one copy: that of the published block, by its copy engines.
void test_failing_copy_of_a_published_block(void**)
{
    expect_no_reason(run(2, "200", [](ForkedRank& self) -> std::string {
        MixedRank rank(self);
        const Kind& kind = self.rank() == 1 ? device : host;
        std::string wrong = rank.call(1, kind, {1000, 0});
        if (!wrong.empty()) return wrong;
        rank.meet();
        if (self.rank() == 1) hip_sim_fail_copy_at(hip_sim_copies() + 1);
        Status status = rank.start(2, kind, {1000, 0});
        if (status == Status::in_progress) status = rank.finish();
        if (self.rank() == 1 && status != Status::transport_error) wrong = "no error";
        rank.meet();
        // Rank 0 needs nothing of rank 1, and may have ended the call.
        if (self.rank() == 0 && rank.start(3, kind, {1000, 0}) != Status::in_progress)
            wrong = "rank 0 never hears of it";
        if (self.rank() == 0 && rank.finish() != Status::peer_failed) wrong = "not as a failure";
        return wrong;
    }));
}

// The same copy goes on for ever, and may still write into the buffer.
void test_hanging_copy_of_a_published_block(void**)
{
    expect_no_reason(run(2, "200", [](ForkedRank& self) -> std::string {
        gpu::limit_waits({.bound = std::chrono::seconds(1), .fails = true});
        MixedRank rank(self, std::chrono::seconds(1));
        const Kind& kind = self.rank() == 1 ? device : host;
        std::string wrong = rank.call(1, kind, {1000, 0});
        if (!wrong.empty()) return wrong;
        if (self.rank() == 1) hip_sim_hang_copy_at(hip_sim_copies() + 1);
        Status status = rank.start(2, kind, {1000, 0});
        if (status == Status::in_progress) status = rank.finish();
        if (self.rank() == 1 && status != Status::timed_out)
            wrong = std::string("ended with ") + to_string(status);
        if (self.rank() == 1 && rank.transport().idle()) wrong = "its buffer may be used again";
        hip_sim_hang_copy_at(0);
        rank.meet();
        return wrong;
    }));
}

// Rank 1 takes the call for a larger one.
void expect_mismatch(const Kind& first, const Kind& second)
{
    expect_no_reason(run(2, "200", [&](ForkedRank& self) -> std::string {
        MixedRank rank(self);
        const bool is_first = self.rank() == 0;
        Status status = rank.start(1, is_first ? first : second, rank.all(is_first ? 100 : 200));
        if (status == Status::in_progress) status = rank.finish();
        rank.meet();
        return status == Status::mismatch || status == Status::peer_failed
                   ? ""
                   : std::string("ended with ") + to_string(status);
    }));
}

void test_ranks_that_disagree(void**)
{
    for (const Kind& first : {host, device})
        for (const Kind& second : {host, device}) expect_mismatch(first, second);
}

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_each_pair),
        cmocka_unit_test(test_any_memory),
        cmocka_unit_test(test_no_copies_for_host_memory),
        cmocka_unit_test(test_failing_copy_of_a_published_block),
        cmocka_unit_test(test_hanging_copy_of_a_published_block),
        cmocka_unit_test(test_ranks_that_disagree),
    };
    return hier::test::run_cases(argc, argv, "mixed_calls", tests);
}
