// SPDX-License-Identifier: BSD-3-Clause
// A whole team whose network is a fake one, and a collective that only this test has. Nothing below
// src/coll knows either of them.
//
// Each rank is a node of its own. The ranks set their teams up together, a thread for each. After that
// one thread moves all of them, in an order that a random number chooses.
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "coll/allgather/allgather.hpp"
#include "hier/hier.h"
#include "team/group.hpp"
#include "team/team.hpp"
#include "test/support/fake_network.hpp"

#include "test/support/cmocka.hpp"

namespace {

using namespace hier;
using namespace hier::test;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// ---- a collective of this test: rank 0 gives all others a word

class BroadcastOfWord final : public Collective {
public:
    static constexpr std::size_t bytes = sizeof(std::uint64_t);

    explicit BroadcastOfWord(const Topology& topology) : topology_(topology) {}
    static std::unique_ptr<Collective> make(const Topology& topology, const Rates&)
    {
        return std::make_unique<BroadcastOfWord>(topology);
    }

    const char* name() const override { return "broadcast of a word"; }
    bool eligible(std::size_t size) const override { return size == bytes; }
    Choice choose(std::size_t, const Constraints&) const override
    {
        return {.chunk = bytes, .depth = 2};
    }
    Cost cost(std::size_t, const Constraints&) const override { return {1e-6, 2e-6}; }
    Plan plan(const PlanInput& input) const override
    {
        Plan plan;
        plan.depth = input.choice.depth;
        if (input.rank != 0) {
            (void)plan.append(op(Op::Kind::announce, 0));
            Op await = op(Op::Kind::await_data, 0);
            await.count = 1;
            (void)plan.append(await);
            return plan;
        }
        Op copy = op(Op::Kind::copy, 0);
        copy.level = Level::node;
        copy.to = Place::receive;
        copy.slice = {0, 0, bytes};
        (void)plan.append(copy);
        for (int peer = 1; peer < topology_.size(); peer++) put_to(peer, plan);
        return plan;
    }

private:
    static Op op(Op::Kind kind, int peer)
    {
        Op op{};
        op.kind = kind;
        op.level = Level::rail;
        op.from = Place::send;
        op.peer = peer;
        return op;
    }
    static void put_to(int peer, Plan& plan)
    {
        const auto announced = plan.append(op(Op::Kind::await_announced, peer));
        Op put = op(Op::Kind::put, peer);
        put.count = 1;
        put.slice = {0, 0, bytes};
        const auto is_put = plan.append(put, {announced});
        (void)plan.append(op(Op::Kind::drain, peer), {is_put});
    }

    const Topology& topology_;
};

constexpr MakeCollective collectives[] = {Allgather::make, BroadcastOfWord::make};
enum : std::size_t { allgather, broadcast };

// ---- how the ranks exchange bytes in set-up

class Mail {
public:
    void send(int from, int to, const void* bytes, std::size_t size)
    {
        const auto* const first = static_cast<const std::byte*>(bytes);
        const std::lock_guard lock(mutex_);
        waiting_[{from, to}].emplace_back(first, first + size);
        arrived_.notify_all();
    }
    void receive(int from, int to, void* bytes)
    {
        std::unique_lock lock(mutex_);
        auto& queue = waiting_[{from, to}];
        arrived_.wait(lock, [&] { return !queue.empty(); });
        std::memcpy(bytes, queue.front().data(), queue.front().size());
        queue.pop_front();
    }

private:
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> waiting_;
};

struct Address {
    Mail* mail;
    int rank;
};

int exchange(void* context, const void* out, std::size_t out_bytes, int to, void* in, std::size_t,
             int from)
{
    const Address& self = *static_cast<const Address*>(context);
    self.mail->send(self.rank, to, out, out_bytes);
    self.mail->receive(from, self.rank, in);
    return 0;
}

// ---- the ranks

class World {
public:
    World(int ranks, std::uint64_t seed)
        : network_({.seed = seed}, std::nullopt, depth), rail_(index(ranks)), teams_(index(ranks)),
          requests_(index(ranks)), random_(seed)
    {
        for (int r = 0; r < ranks; r++) addresses_.push_back({&mail_, r});
        std::vector<std::thread> threads;
        for (int r = 0; r < ranks; r++) threads.emplace_back([this, r] { set_up(r); });
        for (std::thread& thread : threads) thread.join();
    }

    const std::string& fault() const { return fault_.empty() ? network_.fault() : fault_; }
    int size() const { return static_cast<int>(teams_.size()); }
    const Team& team(int rank) const { return *teams_[index(rank)]; }

    // `recv` has room for what the collective gives. Both stay where they are until run().
    void start(int rank, std::size_t collective, std::vector<std::byte>& send,
               std::vector<std::byte>& recv)
    {
        Request* request = nullptr;
        const Status status =
            teams_[index(rank)]->start({.collective = collective,
                                        .bytes = send.size(),
                                        .in_place = false,
                                        .send = {send.data(), send.size(), {}},
                                        .receive = {recv.data(), recv.size(), {}}},
                                       request);
        if (status != Status::in_progress) blame(rank, "a call was not started");
        requests_[index(rank)].push_back(request);
    }

    // Moves ranks until all of them have ended all calls.
    void run()
    {
        constexpr int bound = 1000000;
        for (int steps = 0; fault().empty() && steps < bound; steps++) {
            if (steps % 64 == 0 && is_over()) break;
            (void)teams_[random_() % teams_.size()]->progress();
        }
        for (int r = 0; r < size(); r++) {
            for (Request* request : requests_[index(r)])
                if (request->test() != Status::ok) blame(r, "a call has not ended well");
            requests_[index(r)].clear();
        }
    }

private:
    static constexpr int depth = 4;

    void blame(int rank, const std::string& what)
    {
        const std::lock_guard lock(mutex_);
        if (fault_.empty()) fault_ = "rank " + std::to_string(rank) + ": " + what;
    }

    bool is_over() const
    {
        for (const auto& of_rank : requests_)
            for (Request* request : of_rank)
                if (request->test() == Status::in_progress) return false;
        return true;
    }

    void set_up(int rank)
    {
        const hier_bootstrap bootstrap{&addresses_[index(rank)], rank, size(), exchange, "fake"};
        hier_config config{};
        config.chunk_bytes = 16 << 10;
        config.depth = depth;
        config.ranks_per_node = 1;
        config.timeout = 20;
        const MakeNetwork make_network = [this](const NetworkSetup& setup) {
            return std::make_unique<FakeTransport>(network_, rail_, Level::rail, setup.rank,
                                                   setup.topology.rail_index_of(setup.rank));
        };
        try {
            const Group all(bootstrap);
            all.agree("", [&] {
                teams_[index(rank)] = std::make_unique<Team>(config, bootstrap, all,
                                                             TeamParts{collectives, make_network});
            });
        } catch (const std::exception& e) {
            blame(rank, e.what());
        }
    }

    Mail mail_;
    std::mutex mutex_;  // of fault_
    std::string fault_;
    FakeNetwork network_;
    FakeGroup rail_;
    std::vector<Address> addresses_;
    std::vector<std::unique_ptr<Team>> teams_;
    std::vector<std::vector<Request*>> requests_;  // by rank
    std::mt19937_64 random_;
};

// ---- calls

// Everything that a rank passes to its calls, and what has to come of it.
class Calls {
public:
    explicit Calls(World& world) : world_(world) {}

    void start_allgather(std::size_t bytes)
    {
        const int number = calls_++;
        for (int r = 0; r < world_.size(); r++) {
            Buffers& b = kept_.emplace_back(Buffers{number, r, {}, {}, {}});
            for (std::size_t i = 0; i < bytes; i++) b.send.push_back(value(r, number, i));
            b.recv.assign(bytes * index(world_.size()), std::byte{0});
            for (int from = 0; from < world_.size(); from++)
                for (std::size_t i = 0; i < bytes; i++) b.wanted.push_back(value(from, number, i));
            world_.start(r, allgather, b.send, b.recv);
        }
    }
    void start_broadcast()
    {
        const int number = calls_++;
        for (int r = 0; r < world_.size(); r++) {
            Buffers& b = kept_.emplace_back(Buffers{number, r, {}, {}, {}});
            for (std::size_t i = 0; i < BroadcastOfWord::bytes; i++) {
                b.send.push_back(value(r, number, i));
                b.wanted.push_back(value(0, number, i));
            }
            b.recv.assign(b.send.size(), std::byte{0});
            world_.start(r, broadcast, b.send, b.recv);
        }
    }
    // "" or the first wrong byte.
    std::string fault() const
    {
        for (const Buffers& b : kept_) {
            for (std::size_t i = 0; i < b.wanted.size(); i++) {
                if (b.recv[i] == b.wanted[i]) continue;
                return "call " + std::to_string(b.call) + ", rank " + std::to_string(b.rank) +
                       ": byte " + std::to_string(i) + " is wrong";
            }
        }
        return "";
    }

private:
    struct Buffers {
        int call, rank;
        std::vector<std::byte> send, recv, wanted;
    };

    static std::byte value(int rank, int call, std::size_t i)
    {
        return static_cast<std::byte>(1 + (index(rank * 89 + call * 31) + i * 7 + i / 251) % 255);
    }

    World& world_;
    int calls_ = 0;
    std::deque<Buffers> kept_;
};

// ---- tests

using Start = void (*)(Calls& calls, World& world);

// With several numbers of ranks, each in several orders of events.
std::string over_worlds(Start start)
{
    for (const int ranks : {2, 3, 5}) {
        for (std::uint64_t seed = 1; seed <= 8; seed++) {
            World world(ranks, seed);
            if (!world.fault().empty()) return "set-up: " + world.fault();
            Calls calls(world);
            start(calls, world);
            world.run();
            const std::string fault = world.fault().empty() ? calls.fault() : world.fault();
            if (!fault.empty())
                return std::to_string(ranks) + " ranks, seed " + std::to_string(seed) + ": " +
                       fault;
        }
    }
    return "";
}

void test_allgathers(void**)
{
    expect_no_reason(keep(over_worlds([](Calls& calls, World& world) {
        for (const std::size_t bytes : {1, 100, 16384, 70001, 8}) {
            calls.start_allgather(bytes);
            world.run();
        }
    })));
}

// All are started before anybody asks for the status of the first one.
void test_calls_wait_in_a_queue(void**)
{
    expect_no_reason(keep(over_worlds([](Calls& calls, World&) {
        for (const std::size_t bytes : {40000, 3, 70001, 100}) calls.start_allgather(bytes);
    })));
}

void test_a_broadcast(void**)
{
    expect_no_reason(keep(over_worlds([](Calls& calls, World& world) {
        calls.start_broadcast();
        world.run();
        calls.start_broadcast();
    })));
}

void test_two_collectives_in_turn(void**)
{
    expect_no_reason(keep(over_worlds([](Calls& calls, World& world) {
        calls.start_allgather(5000);
        calls.start_broadcast();
        calls.start_allgather(40000);
        calls.start_broadcast();
        world.run();
        calls.start_broadcast();
        calls.start_allgather(17);
    })));
}

std::string describe_team()
{
    const World world(2, 1);
    if (!world.fault().empty()) return world.fault();
    const std::string& text = world.team(0).description();
    const bool is_named = text.find("a fake network between nodes") != std::string::npos;
    return is_named ? "" : text;
}

void test_the_team_names_its_network(void**) { expect_no_reason(keep(describe_team())); }

}  // namespace

int main(int argc, char** argv)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_allgathers),
        cmocka_unit_test(test_calls_wait_in_a_queue),
        cmocka_unit_test(test_a_broadcast),
        cmocka_unit_test(test_two_collectives_in_turn),
        cmocka_unit_test(test_the_team_names_its_network),
    };
    return hier::test::run_cases(argc, argv, "team_on_fake_network", tests);
}
