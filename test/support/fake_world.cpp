// SPDX-License-Identifier: BSD-3-Clause
#include "fake_world.hpp"

#include <exception>
#include <optional>
#include <thread>

#include "broadcast_of_word.hpp"
#include "coll/allgather/allgather.hpp"
#include "hier/hier.h"
#include "team/group.hpp"

namespace hier::test {
namespace {

constexpr int depth = 4;
constexpr MakeCollective collectives[] = {Allgather::make, BroadcastOfWord::make};

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::byte value(int rank, int call, std::size_t i)
{
    return static_cast<std::byte>(1 + (index(rank * 89 + call * 31) + i * 7 + i / 251) % 255);
}

}  // namespace

FakeWorld::FakeWorld(int ranks, std::uint64_t seed)
    : network_({.seed = seed}, std::nullopt, depth), rail_(index(ranks)), teams_(index(ranks)),
      requests_(index(ranks)), random_(seed)
{
    for (int r = 0; r < ranks; r++) addresses_.push_back({&mail_, r});
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; r++) threads.emplace_back([this, r] { set_up(r); });
    for (std::thread& thread : threads) thread.join();
}

void FakeWorld::set_up(int rank)
{
    const hier_bootstrap bootstrap{
        &addresses_[index(rank)], rank, size(), exchange, "fake", nullptr};
    hier_config config{};
    config.chunk_bytes = 16 << 10;
    config.depth = depth;
    config.ranks_per_node = 1;
    config.timeout = 20;
    config.timeout_action = HIER_TIMEOUT_FAIL;
    const MakeNetwork make_network = [this](const NetworkSetup& setup) {
        return std::make_unique<FakeTransport>(network_, rail_, Level::rail, setup.rank,
                                               setup.topology.rail_index_of(setup.rank));
    };
    try {
        const Group all(bootstrap);
        all.agree("", [&] {
            teams_[index(rank)] = std::make_unique<hier::Team>(
                config, bootstrap, all, TeamParts{collectives, make_network});
        });
    } catch (const std::exception& e) {
        blame(rank, e.what());
    }
}

void FakeWorld::blame(int rank, const std::string& what)
{
    const std::lock_guard lock(mutex_);
    if (fault_.empty()) fault_ = "rank " + std::to_string(rank) + ": " + what;
}

void FakeWorld::start(int rank, std::size_t collective, std::vector<std::byte>& send,
                      std::vector<std::byte>& recv, Launch when)
{
    Request* request = nullptr;
    const Status status = teams_[index(rank)]->start({.collective = collective,
                                                      .bytes = send.size(),
                                                      .in_place = false,
                                                      .send = {send.data(), send.size(), {}},
                                                      .receive = {recv.data(), recv.size(), {}}},
                                                     request, when);
    if (status != Status::in_progress) blame(rank, "a call was not started");
    requests_[index(rank)].push_back(request);
}

bool FakeWorld::is_over() const
{
    for (const auto& of_rank : requests_)
        for (Request* request : of_rank)
            if (request->test() == Status::in_progress) return false;
    return true;
}

void FakeWorld::run()
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

void FakeCalls::start_allgather(std::size_t bytes)
{
    const int number = calls_++;
    for (int r = 0; r < world_.size(); r++) {
        Buffers& b = kept_.emplace_back(Buffers{number, r, {}, {}, {}});
        for (std::size_t i = 0; i < bytes; i++) b.send.push_back(value(r, number, i));
        b.recv.assign(bytes * index(world_.size()), std::byte{0});
        for (int from = 0; from < world_.size(); from++)
            for (std::size_t i = 0; i < bytes; i++) b.wanted.push_back(value(from, number, i));
        world_.start(r, FakeWorld::allgather, b.send, b.recv, world_.now_or_later());
    }
}

void FakeCalls::start_broadcast()
{
    const int number = calls_++;
    for (int r = 0; r < world_.size(); r++) {
        Buffers& b = kept_.emplace_back(Buffers{number, r, {}, {}, {}});
        for (std::size_t i = 0; i < BroadcastOfWord::bytes; i++) {
            b.send.push_back(value(r, number, i));
            b.wanted.push_back(value(0, number, i));
        }
        b.recv.assign(b.send.size(), std::byte{0});
        world_.start(r, FakeWorld::broadcast, b.send, b.recv, world_.now_or_later());
    }
}

std::string FakeCalls::fault() const
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

std::string fault_over_worlds(StartCalls start)
{
    for (const int ranks : {2, 3, 5}) {
        for (std::uint64_t seed = 1; seed <= 8; seed++) {
            FakeWorld world(ranks, seed);
            if (!world.fault().empty()) return "set-up: " + world.fault();
            FakeCalls calls(world);
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

}  // namespace hier::test
