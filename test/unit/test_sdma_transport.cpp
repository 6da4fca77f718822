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

constexpr std::size_t some_bytes = 30000;

// No piece of it is like another.
Bytes content(int owner, std::uint64_t sequence, std::size_t bytes)
{
    Bytes all(bytes);
    std::uint64_t state = static_cast<std::uint64_t>(owner) * 1000 + sequence;
    for (unsigned char& byte : all) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<unsigned char>(state >> 56);
    }
    return all;
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
    explicit Rank(ForkedRank& self, bool pool = false, std::size_t shard = some_bytes)
        : self_(self), shard_(shard), group_(self.group()),
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
        put(send_, content(self_.rank(), sequence, shard_));
        Binding b{};
        b.sequence = sequence;
        b.send = {send_, shard_, allocation_of(send_)};
        b.receive = {receive_, shard_ * static_cast<std::size_t>(self_.size()),
                     allocation_of(receive_)};
        b.send_offset = at(self_.rank());
        return transport_->begin(b);
    }
    Status put_own(int peer, std::uint32_t op)
    {
        return transport_->put(
            {peer, {at(self_.rank()), shard_}, Place::send, Place::receive, 1, op});
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
        return get(receive_ + at(peer), shard_) == content(peer, sequence, shard_)
                   ? ""
                   : "signalled before it was there";
    }
    std::size_t at(int rank) const { return static_cast<std::size_t>(rank) * shard_; }
    Transport& transport() { return *transport_; }
    void submit() { transport_->submit(counter); }
    std::byte* receive() { return receive_; }
    void meet() { (void)group_.allgather(0); }

    Counter counter;
    Status status = Status::ok;

private:
    ForkedRank& self_;
    std::size_t shard_;
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

// `failing`: the call of HIP that fails while this rank announces; 0: none.
std::string exchange(Rank& rank, const ForkedRank& self, std::uint64_t sequence,
                     std::uint64_t failing = 0)
{
    if (failed(rank.begin(sequence))) return "begin failed";
    hip_sim_fail_at(failing == 0 ? 0 : hip_sim_calls() + failing);
    if (failed(rank.transport().announce(Op::every_peer))) return "announcing failed";
    hip_sim_fail_at(0);
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
            put(rank.receive(), Bytes(some_bytes, 99));
            const Slice slice{0, some_bytes};
            (void)rank.transport().put({1, slice, Place::send, Place::receive, 1, 7});
            (void)rank.transport().put({1, slice, Place::receive, Place::receive, 1, 3});
            rank.submit();
            if (!await([&] { return rank.turn() && rank.counter.done == 2; }))
                fault = "not completed";
        }
        rank.meet();
        if (self.rank() == 1 && get(rank.receive(), some_bytes) != content(0, 1, some_bytes))
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

// It has been lent some that can, which all its peers map.
void test_memory_that_cannot_be_exported(void**)
{
    expect_no_reason(run(3, "200", [](ForkedRank& self) -> std::string {
        Rank rank(self, self.rank() == 1);
        for (std::uint64_t sequence = 1; sequence <= 3; sequence++) {
            const auto fault = exchange(rank, self, sequence);
            if (!fault.empty()) return "call " + std::to_string(sequence) + ": " + fault;
        }
        if (hip_sim_live("mappings") != 2) return "not by copy engines";
        return ForkedRank::is_logged("peers push into 64 MiB") == (self.rank() == 1)
                   ? ""
                   : "it does not say so";
    }));
}

// More than there are cells for, and no end of one: each is used again and again.
void test_many_pieces(void**)
{
    expect_no_reason(run(2, "20", [](ForkedRank& self) -> std::string {
        Rank rank(self, true, (45 << 20) + 12345);
        for (std::uint64_t sequence = 1; sequence <= 3; sequence++) {
            const auto fault = exchange(rank, self, sequence);
            if (!fault.empty()) return "call " + std::to_string(sequence) + ": " + fault;
        }
        return "";
    }));
}

// Who has heard of a failure starts no more pieces, whatever cells come free, and keeps what he has.
void test_failure_among_pieces(void**)
{
    expect_no_reason(run(2, "20", [](ForkedRank& self) -> std::string {
        Rank rank(self, true, 45 << 20);
        if (const auto fault = exchange(rank, self, 1); !fault.empty()) return fault;
        if (failed(rank.begin(2)) || failed(rank.transport().announce(Op::every_peer)))
            return "begin failed";
        std::string fault;
        if (!rank.wait_for_peer(1 - self.rank())) return "never ready";
        rank.meet();
        if (self.rank() == 0) {
            const std::uint64_t before = hip_sim_copies();
            (void)rank.put_own(1, 0);
            rank.turn();
            const std::uint64_t begun = hip_sim_copies();
            if (begun == before) fault = "nothing is pushed";
            rank.transport().raise(Status::transport_error);
            if (!await([&] { return rank.transport().idle(); })) fault = "not idle";
            rank.transport().stop();
            rank.meet();
            rank.meet();
            for (int i = 0; i < 100; i++) rank.turn();
            if (hip_sim_copies() != begun) fault = "pushed after the failure";
        } else {
            rank.meet();  // all is in the cells that will ever be
            if (await([&] { return !rank.turn(); }) && rank.status != Status::peer_failed)
                fault = "heard as something else";
            rank.transport().raise(Status::peer_failed);
            if (!await([&] { return rank.transport().idle(); })) fault = "not idle";
            if (rank.transport().may_write(0, 1)) fault = "who writes into cells is waited for";
            rank.meet();
        }
        rank.meet();
        rank.transport().end();
        return fault;
    }));
}

// Whatever fails when a rank wants to lend memory: then the shared memory does.
void test_nothing_to_lend(void**)
{
    constexpr std::uint64_t more_than_it_takes = 20;
    int not_lent = 0;
    bool is_lent = false;
    for (std::uint64_t failing = 1; failing <= more_than_it_takes; failing++) {
        const char* reason = run(2, "20", [failing](ForkedRank& self) -> std::string {
            Rank rank(self, self.rank() == 1);
            auto fault = exchange(rank, self, 1, self.rank() == 1 ? failing : 0);
            const std::uint64_t allocations = hip_sim_live("allocations");
            if (fault.empty()) fault = exchange(rank, self, 2);
            if (!fault.empty()) return "call " + std::to_string(failing) + ": " + fault;
            if (self.rank() == 0) return "";
            const bool lends = !ForkedRank::is_logged("through shared memory");
            if (allocations != (lends ? 3 : 2)) return "what it did not lend is still there";
            return lends ? "lent" : "";
        });
        is_lent = reason != nullptr && std::string(reason) == "rank 1: lent";
        not_lent += is_lent ? 0 : 1;
        if (!is_lent) expect_no_reason(reason);
    }
    assert_true(is_lent);
    assert_true(not_lent >= 3);  // no memory, no word of what it is, no handle
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
        cmocka_unit_test(test_many_pieces),
        cmocka_unit_test(test_failure_among_pieces),
        cmocka_unit_test(test_nothing_to_lend),
        cmocka_unit_test(test_failing_copy),
        cmocka_unit_test(test_copy_that_is_not_started),
    };
    return cmocka_run_group_tests_name("sdma_transport", tests, nullptr, nullptr);
}
