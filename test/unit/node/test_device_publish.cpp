// SPDX-License-Identifier: BSD-3-Clause
// Published blocks of ranks that share a GPU: any mix of memory, any order of blocks, copies that
// fail, ranks that disagree.
#include "test/support/engine_rank.hpp"

namespace {

using namespace hier;
using namespace hier::test;

constexpr std::size_t bytes = 3000, gap = 5;
constexpr std::uint32_t put_op = 1, copy_op = 2;

struct Memory {
    bool send_on_device = true, receive_on_device = true, in_place = false;
};

struct Done final : Completions {
    void complete(std::uint32_t op, Status status) override
    {
        (op == put_op ? put : copy) = status;
    }
    Status put = Status::in_progress, copy = Status::in_progress;
};

// A rank whose block goes to `place` in the receive buffers.
class Publisher {
public:
    Publisher(const ForkedRank& self, int place, Memory memory)
        : memory_(memory), rank_(self.rank()), size_(self.size()), offset_(at(place)),
          group_(self.group()),
          transport_(make_node_transport(group_,
                                         {.processes = group_.collect(own_cma_target()),
                                          .have_devices = true,
                                          .share_gpus = true},
                                         HIER_INTRA_AUTO)),
          send_(allocate(memory.send_on_device, bytes)),
          receive_(allocate(memory.receive_on_device, at(size_)))
    {
        places_ = group_.collect(place);
    }
    static std::size_t at(int place) { return static_cast<std::size_t>(place) * (bytes + gap); }

    Status start(std::uint64_t sequence, std::size_t total)
    {
        done_ = {};
        put(receive_, Bytes(at(size_), 0xee));
        std::byte* const from = memory_.in_place ? receive_ + offset_ : send_;
        put(from, content(rank_, sequence, bytes));
        Binding binding{};
        binding.sequence = sequence;
        binding.receive = {receive_, at(size_)};
        binding.send = {from, bytes};
        if (memory_.receive_on_device) binding.receive.memory = allocation_of(receive_);
        if (memory_.in_place ? memory_.receive_on_device : memory_.send_on_device)
            binding.send.memory = allocation_of(from);
        binding.publish = true;
        binding.total = total;
        Status status = transport_->begin(binding);
        if (failed(status)) return status;
        const Slice slice{memory_.in_place ? offset_ : 0, offset_, bytes};
        const Place place = memory_.in_place ? Place::receive : Place::send;
        status = transport_->put({Op::every_peer, slice, place, Place::receive, 1, put_op});
        if (status != Status::in_progress) done_.put = status;
        if (failed(status) || memory_.in_place) {
            done_.copy = Status::ok;
            return status;
        }
        status = transport_->copy({rank_, slice, place, Place::receive, 0, copy_op});
        if (status != Status::in_progress) done_.copy = status;
        return status;
    }
    // ok: all is done.
    Status turn()
    {
        Status status = transport_->progress(done_);
        for (const Status each : {done_.put, done_.copy})
            if (failed(each)) status = each;
        if (failed(status)) return status;
        for (int peer = 0; peer < size_; peer++) {
            if (peer == rank_) continue;
            const Status entered = transport_->entered(peer);
            if (failed(entered)) return entered;
            if (entered != Status::ok || transport_->arrived(peer) < 1) return Status::in_progress;
        }
        return done_.put == Status::ok && done_.copy == Status::ok ? Status::ok
                                                                   : Status::in_progress;
    }
    Status finish()
    {
        Status status = Status::in_progress;
        (void)await([&] { return (status = turn()) != Status::in_progress; });
        return status;
    }
    std::string fault(std::uint64_t sequence) const
    {
        const Bytes got = get(receive_, at(size_));
        for (int rank = 0; rank < size_; rank++) {
            const auto from = got.begin() + static_cast<std::ptrdiff_t>(
                                                at(places_[static_cast<std::size_t>(rank)]));
            const auto end = from + static_cast<std::ptrdiff_t>(bytes);
            if (Bytes(from, end) != content(rank, sequence, bytes))
                return "a wrong block of rank " + std::to_string(rank);
            if (Bytes(end, end + gap) != Bytes(gap, 0xee)) return "bytes between blocks";
        }
        return "";
    }
    std::string call(std::uint64_t sequence)
    {
        const Status started = start(sequence, at(size_));
        if (failed(started)) return "cannot start";
        if (const Status status = finish(); status != Status::ok)
            return std::string("ended with ") + to_string(status);
        const std::string wrong = fault(sequence);
        transport_->end();
        return wrong;
    }
    Transport& transport() { return *transport_; }
    void meet() { (void)group_.collect(0); }

private:
    static std::byte* allocate(bool on_device, std::size_t length)
    {
        return on_device ? device_memory(length) : new std::byte[length];
    }

    Memory memory_;
    int rank_, size_;
    std::size_t offset_;
    Group group_;
    std::unique_ptr<NodeTransport> transport_;
    std::byte* send_;
    std::byte* receive_;
    std::vector<int> places_;
    Done done_;
};

const char* run_on_one_device(int ranks, const std::function<std::string(ForkedRank&)>& body)
{
    return run(ranks, "200", [&](ForkedRank& self) {
        gives_success(hipSetDevice(0), "hipSetDevice");
        return body(self);
    });
}

std::string calls(Publisher& rank, std::uint64_t count)
{
    for (std::uint64_t sequence = 1; sequence <= count; sequence++) {
        const std::string wrong = rank.call(sequence);
        if (!wrong.empty()) return "call " + std::to_string(sequence) + ": " + wrong;
    }
    return "";
}

void test_two_copies_whatever_the_ranks(void**)
{
    for (const int ranks : {2, 5}) {
        expect_no_reason(run_on_one_device(ranks, [](ForkedRank& self) -> std::string {
            Publisher rank(self, self.rank(), {});
            std::string wrong = calls(rank, 4);
            if (!wrong.empty()) return wrong;
            const std::uint64_t before = hip_sim_copies();
            if (failed(rank.start(5, Publisher::at(self.size())))) return "cannot start";
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

// A copy out of the device fails on rank 1, or the copy into it. Rank 1 gets an error and tells it.
void test_failing_copies(void**)
{
    for (const std::uint64_t nth : {1U, 2U}) {
        expect_no_reason(run_on_one_device(2, [&](ForkedRank& self) -> std::string {
            Publisher rank(self, self.rank(), {});
            const std::string wrong = calls(rank, 2);
            if (!wrong.empty()) return wrong;
            if (self.rank() == 1) hip_sim_fail_copy_at(hip_sim_copies() + nth);
            Status status = rank.start(3, Publisher::at(2));
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
        if (failed(rank.start(1, Publisher::at(2) + more))) return "cannot start";
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
        cmocka_unit_test(test_failing_copies),
        cmocka_unit_test(test_ranks_that_disagree),
    };
    return hier::test::run_cases(argc, argv, "device_publish", tests);
}
