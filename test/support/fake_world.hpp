// SPDX-License-Identifier: BSD-3-Clause
// Whole teams in one process, on a fake network, and the calls that run on them.
//
// Each rank is a node of its own. The ranks set their teams up together, a thread for each. After
// that one thread moves all of them, in an order that a random number chooses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "fake_network.hpp"
#include "mail.hpp"
#include "team/team.hpp"

namespace hier::test {

class FakeWorld {
public:
    // Index among the collectives of the teams.
    enum : std::size_t { allgather, broadcast };

    FakeWorld(int ranks, std::uint64_t seed);

    // The first thing that went wrong; empty when there is none.
    const std::string& fault() const { return fault_.empty() ? network_.fault() : fault_; }
    int size() const { return static_cast<int>(teams_.size()); }
    const hier::Team& team(int rank) const { return *teams_[static_cast<std::size_t>(rank)]; }
    hier::Team& team(int rank) { return *teams_[static_cast<std::size_t>(rank)]; }

    // `recv` has room for what the collective gives. Both stay where they are until run().
    void start(int rank, std::size_t collective, std::vector<std::byte>& send,
               std::vector<std::byte>& recv, Launch when);
    Launch now_or_later() { return random_() % 2 == 0 ? Launch::now : Launch::later; }
    // Moves ranks until all of them have ended all calls.
    void run();

private:
    void blame(int rank, const std::string& what);
    bool is_over() const;
    void set_up(int rank);

    Mail mail_;
    std::mutex mutex_;  // of fault_
    std::string fault_;
    FakeNetwork network_;
    FakeGroup rail_;
    std::vector<Address> addresses_;
    std::vector<std::unique_ptr<hier::Team>> teams_;
    std::vector<std::vector<Request*>> requests_;  // by rank
    std::mt19937_64 random_;
};

// The buffers of all calls in a world, and the bytes that each call has to give.
class FakeCalls {
public:
    explicit FakeCalls(FakeWorld& world) : world_(world) {}

    // On all ranks.
    void start_allgather(std::size_t bytes);
    void start_broadcast();
    // "" or the first wrong byte.
    std::string fault() const;

private:
    struct Buffers {
        int call, rank;
        std::vector<std::byte> send, recv, wanted;
    };

    FakeWorld& world_;
    int calls_ = 0;
    std::deque<Buffers> kept_;
};

// Starts calls, and may run some of them. The rest run afterwards.
using StartCalls = void (*)(FakeCalls& calls, FakeWorld& world);

// With several numbers of ranks, each in several orders of events. "" or what is wrong.
std::string fault_over_worlds(StartCalls start);

}  // namespace hier::test
