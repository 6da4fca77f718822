// The node level where ranks use GPUs: what a signal promises, who waits for whom, and what happens when a copy fails
// or memory cannot be exported.
#include <unistd.h>

#include "gpu_rank.hpp"
#include "group.hpp"
#include "transport/node_transport.hpp"

#include "cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t shard = 30000;

Bytes content(int owner, std::uint64_t sequence)
{
    return Bytes(shard, static_cast<unsigned char>(owner * 16 + static_cast<int>(sequence) + 1));
}

struct Counter final : Completions {
    void complete(std::uint32_t, Status status) override
    {
        done++;
        if (failed(status)) worst = status;
    }
    int done = 0;
    Status worst = Status::ok;
};

// One rank, with its buffers in device memory.
class Rank {
public:
    explicit Rank(ForkedRank& self, bool pool = false)
        : self_(self), group_(self.group()),
          transport_(make_node_transport(
              group_, {.pids = group_.allgather(static_cast<int>(getpid())), .have_devices = true},
              HIER_INTRA_AUTO)),
          send_(device_memory(2 * shard)),
          receive_(device_memory(shard * static_cast<std::size_t>(self.size()), pool))
    {
    }
    // Drivers give memory back only when nobody has it mapped: not here.
    Status begin(std::uint64_t sequence)
    {
        put(send_, content(self_.rank(), sequence));
        Binding b{};
        b.sequence = sequence;
        b.send = {send_, shard, allocation_of(send_)};
        b.receive = {receive_, shard * static_cast<std::size_t>(self_.size()),
                     allocation_of(receive_)};
        b.send_offset = at(self_.rank());
        return transport_->begin(b);
    }
    Status put_own(int peer, std::uint32_t op)
    {
        return transport_->put(
            {peer, {at(self_.rank()), shard}, Place::send, Place::receive, 1, op});
    }
    bool turn()
    {
        status = transport_->progress(counter);
        return !failed(status) && !failed(counter.worst);
    }
    bool wait_for_peer(int peer)
    {
        return await([&] { return turn() && transport_->ready(peer) == Status::ok; });
    }
    // What has been signalled is there, at once.
    std::string received(int peer, std::uint64_t sequence)
    {
        if (!await([&] { return !turn() || transport_->arrived(peer) > 0; }))
            return "nothing comes";
        if (failed(status) || failed(counter.worst)) return "a failure";
        return get(receive_ + at(peer), shard) == content(peer, sequence)
                   ? ""
                   : "signalled before it was there";
    }
    static std::size_t at(int rank) { return static_cast<std::size_t>(rank) * shard; }
    Transport& transport() { return *transport_; }
    void submit() { transport_->submit(counter); }
    std::byte* receive() { return receive_; }
    void meet() { (void)group_.allgather(0); }

    Counter counter;
    Status status = Status::ok;

private:
    ForkedRank& self_;
    Group group_;
    std::unique_ptr<NodeTransport> transport_;
    std::byte* send_;
    std::byte* receive_;
};

const char* run(int ranks, const char* delay_us,
                const std::function<std::string(ForkedRank&)>& body)
{
    return keep(first_fault(run_ranks(ranks, [&](ForkedRank& self) {
        use_built_module();
        setenv("HIP_SIM_DELAY_US", delay_us, 1);
        setenv("OMPI_COMM_WORLD_RANK", std::to_string(self.rank()).c_str(), 1);
        gives_success(hipSetDevice(self.rank()), "hipSetDevice");
        if (gpu::runtime() == nullptr) return std::string("no runtime");
        return body(self);
    })));
}

std::string exchange(Rank& rank, const ForkedRank& self, std::uint64_t sequence)
{
    if (failed(rank.begin(sequence)) || failed(rank.transport().announce(Op::every_peer)))
        return "begin failed";
    std::uint32_t op = 0;
    for (int peer = 0; peer < self.size(); peer++) {
        if (peer == self.rank()) continue;
        if (!rank.wait_for_peer(peer)) return "a peer is never ready";
        if (failed(rank.put_own(peer, op++))) return "a put failed";
    }
    rank.submit();
    for (int peer = 0; peer < self.size(); peer++) {
        if (peer == self.rank()) continue;
        if (const auto fault = rank.received(peer, sequence); !fault.empty()) return fault;
    }
    if (!await([&] { return rank.turn() && rank.counter.done == self.size() - 1; }))
        return "not completed";
    rank.counter = {};
    rank.transport().end();
    rank.meet();
    return "";
}

void test_signals_follow_data(void**)
{
    expect_no_reason(run(3, "3000", [](ForkedRank& self) -> std::string {
        Rank rank(self);
        for (std::uint64_t sequence = 1; sequence <= 5; sequence++) {
            const auto fault = exchange(rank, self, sequence);
            if (!fault.empty()) return "call " + std::to_string(sequence) + ": " + fault;
        }
        return hip_sim_live("mappings") == 2 ? "" : "not by copy engines";
    }));
}

// Those of the plan that come first go first, in whatever order they were gathered.
void test_order_of_ops(void**)
{
    expect_no_reason(run(2, "2000", [](ForkedRank& self) -> std::string {
        Rank rank(self);
        if (failed(rank.begin(1)) || failed(rank.transport().announce(Op::every_peer)))
            return "begin failed";
        if (!rank.wait_for_peer(1 - self.rank())) return "never ready";
        std::string fault;
        if (self.rank() == 0) {
            // Two into one place: the later op's content stays.
            put(rank.receive(), Bytes(shard, 99));
            const Slice slice{0, shard};
            (void)rank.transport().put({1, slice, Place::send, Place::receive, 1, 7});
            (void)rank.transport().put({1, slice, Place::receive, Place::receive, 1, 3});
            rank.submit();
            if (!await([&] { return rank.turn() && rank.counter.done == 2; }))
                fault = "not completed";
        }
        rank.meet();
        if (self.rank() == 1 && get(rank.receive(), shard) != content(0, 1))
            fault = "in the order of gathering";
        rank.transport().end();
        return fault;
    }));
}

void test_late_peer(void**)
{
    expect_no_reason(run(3, "20", [](ForkedRank& self) -> std::string {
        Rank rank(self);
        std::string fault;
        if (failed(rank.begin(1))) return "begin failed";
        if (self.rank() < 2) {
            const int peer = 1 - self.rank();
            (void)rank.transport().announce(Op::every_peer);
            if (!rank.wait_for_peer(peer) || failed(rank.put_own(peer, 0))) return "not ready";
            rank.submit();
            fault = rank.received(peer, 1);
            if (!await([&] { return rank.turn() && rank.counter.done == 1; }))
                fault = "not completed";
        }
        rank.meet();
        rank.transport().end();
        return fault.empty() ? "" : "while a third is late: " + fault;
    }));
}

void test_memory_that_cannot_be_exported(void**)
{
    expect_no_reason(run(3, "200", [](ForkedRank& self) -> std::string {
        Rank rank(self, self.rank() == 1);
        for (std::uint64_t sequence = 1; sequence <= 3; sequence++) {
            const auto fault = exchange(rank, self, sequence);
            if (!fault.empty()) return "call " + std::to_string(sequence) + ": " + fault;
        }
        const std::uint64_t wanted = self.rank() == 1 ? 2 : 1;
        if (hip_sim_live("mappings") != wanted) return "mapped, or nothing is";
        return ForkedRank::is_logged("cannot be exported") == (self.rank() == 1)
                   ? ""
                   : "it does not say so";
    }));
}

// The one whose copy fails knows, nobody is told that it has come, and all hear of the failure.
void test_failing_copy(void**)
{
    expect_no_reason(run(3, "200", [](ForkedRank& self) -> std::string {
        Rank rank(self);
        if (const auto fault = exchange(rank, self, 1); !fault.empty()) return fault;
        if (failed(rank.begin(2)) || failed(rank.transport().announce(Op::every_peer)))
            return "begin failed";
        std::string fault;
        if (self.rank() == 0) {
            if (!rank.wait_for_peer(1)) return "never ready";
            hip_sim_fail_copy_at(hip_sim_copies() + 1);
            (void)rank.put_own(1, 0);
            rank.submit();
            if (!await([&] { return !rank.turn(); })) fault = "it succeeds";
            if (rank.counter.worst != Status::transport_error) fault = "not said of the op";
            rank.transport().raise(Status::transport_error);
            if (!rank.transport().idle()) fault = "not idle";
        } else {
            if (!await([&] { return !rank.turn(); })) fault = "it never hears of it";
            if (rank.status != Status::peer_failed) fault = "heard as something else";
            if (rank.transport().arrived(0) != 0) fault = "signalled all the same";
        }
        rank.meet();
        rank.transport().end();
        return fault;
    }));
}

// A copy that cannot be started is an error of the call, and nothing of it is running.
void test_copy_that_is_not_started(void**)
{
    expect_no_reason(run(2, "200", [](ForkedRank& self) -> std::string {
        Rank rank(self);
        if (const auto fault = exchange(rank, self, 1); !fault.empty()) return fault;
        if (failed(rank.begin(2)) || failed(rank.transport().announce(Op::every_peer)))
            return "begin failed";
        if (!rank.wait_for_peer(1 - self.rank())) return "never ready";
        (void)rank.put_own(1 - self.rank(), 0);
        hip_sim_fail_at(hip_sim_calls() + 1);
        rank.submit();
        hip_sim_fail_at(0);
        const bool is_error = await([&] { return !rank.turn(); });
        const bool is_idle = rank.transport().idle();
        rank.meet();
        rank.transport().end();
        return !is_error ? "no error" : is_idle ? "" : "not idle";
    }));
}

}  // namespace

int main()
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_signals_follow_data),
        cmocka_unit_test(test_order_of_ops),
        cmocka_unit_test(test_late_peer),
        cmocka_unit_test(test_memory_that_cannot_be_exported),
        cmocka_unit_test(test_failing_copy),
        cmocka_unit_test(test_copy_that_is_not_started),
    };
    return cmocka_run_group_tests_name("sdma_transport", tests, nullptr, nullptr);
}
