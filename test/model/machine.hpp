// SPDX-License-Identifier: BSD-3-Clause
// The state of all ranks and of everything that is on its way between them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "buffer.hpp"
#include "events.hpp"
#include "model.hpp"

namespace hier::model {

// A rank in its current call, or outside after its last call.
struct RankState {
    // The puts between this rank and one peer in this call, by level.
    struct Peer {
        std::array<std::uint32_t, 2> issued{};   // puts to the peer
        std::array<std::uint32_t, 2> landed{};   // how many of those have landed
        std::array<std::uint32_t, 2> arrived{};  // signals of the peer
    };
    struct Drain {
        std::uint32_t op;
        std::uint32_t puts;  // issued when the drain began
    };
    struct Copy {
        std::uint32_t op;
        std::size_t moved = 0;  // bytes
    };

    const Plan* plan = nullptr;
    int call = -1;
    bool inside = false;
    std::size_t left = 0;                // operations not done
    std::vector<std::uint32_t> missing;  // by operation: dependencies not done
    std::vector<std::uint32_t> blocked;  // dependencies done, but something else is awaited
    std::vector<Drain> drains;           // all that have begun and are not done
    std::vector<Copy> copies;            // all that have begun, done or not
    std::vector<std::uint32_t> flights;  // by operation: the first flight of a put
    std::vector<std::vector<std::uint32_t>> sent;  // by node peer: flights
    std::vector<Peer> peers;
    std::vector<std::array<int, 2>>
        announced;  // by peer and level: the last call that it announced to us; kept for all calls
    std::vector<std::array<int, 2>>
        entered;                // by peer and level: the last call in which the peer was seen
    std::vector<Event> parked;  // rail events that wait for this rank's next call
    Buffer receive;
    Buffer bounce;

    Buffer& buffer(Place place) { return place == Place::bounce ? bounce : receive; }
    const Buffer& buffer(Place place) const { return place == Place::bounce ? bounce : receive; }
};

struct Flight {
    static constexpr std::uint32_t none = ~0U;

    Pair pair;
    int call;
    std::uint32_t op;
    std::uint32_t number;
    Extent home;                  // its bytes
    std::size_t packed;           // Op::packed
    std::size_t landed = 0;       // bytes
    std::uint32_t before = none;  // on the same rail pair
    std::uint32_t after = none;
    bool payload_done = false;
    bool signal_done = false;
    bool is_done = false;  // its source may be reused
    // On a node pair: the puts that are seen before this one, and those that wait for this one.
    std::vector<std::uint32_t> earlier{};
    std::vector<std::uint32_t> later{};
};

struct Announcement {
    Pair pair;
    int call;
    bool lets_write;          // false: it says only that the sender is in the call
    bool is_drained = false;  // it lands even if its sender does nothing
};

class Machine {
public:
    Machine(const Topology& topology, std::span<const Call> calls, const Schedule& schedule);
    Verdict run();

private:
    // execute.cpp: the steps of a rank in a call.
    void enter(int rank);
    void offer(int rank, std::uint32_t op);
    void offer_blocked(int rank);
    bool is_ready(int rank, const Op& op) const;
    void execute(int rank, std::uint32_t op);
    void announce(int rank, const Op& op);
    std::vector<int> targets_of(int rank, const Op& op) const;
    void put(int rank, std::uint32_t op);
    Extent home_of(int rank, const Op& op) const;
    Fault fault_of_read(int rank, const Op& op) const;
    void copy(int rank, std::uint32_t op);
    void go_on_with_copy(const Event& event);
    void done(int rank, std::uint32_t op);
    void begin_drain(int rank, std::uint32_t op);
    void end_drains(int rank);
    void complete(int rank, std::uint32_t op);
    bool is_put_to_early(int rank, int peer) const;
    void leave(int rank);

    // land.cpp: the events between ranks.
    void launch(Flight flight);
    void push(Event::Kind kind, std::uint32_t flight);
    bool park(const Pair& pair, const Event& event);
    bool waits_for_earlier(std::uint32_t flight);
    void land_payload(const Event& event);
    void land_signal(const Event& event);
    void land_announcement(const Event& event);
    void note_presence(const Pair& pair, int call, bool lets_write);
    struct Target {
        Buffer& buffer;
        std::size_t at;
    };
    Target target_of(const Flight& flight);
    bool is_stalled(const Flight& flight) const;
    bool meets(Schedule::Kind hazard, const Flight& flight) const;
    void lose(std::uint32_t flight);
    void check_forwarded();

    // At most two parts. More parts would show nothing new.
    std::size_t next_part(std::size_t whole, std::size_t before)
    {
        const std::size_t rest = whole - before;
        return before > 0 || rest < 2 ? rest : 1 + events_.random(rest);
    }

    void happen(const Event& event);
    void fail(Fault fault, int call, int rank, int op = -1);

    static constexpr Level all_levels[] = {Level::node, Level::rail};
    static std::size_t index(int i) { return static_cast<std::size_t>(i); }
    static std::size_t index(Level l) { return static_cast<std::size_t>(l); }
    RankState& at(int rank) { return ranks_[index(rank)]; }
    const RankState& at(int rank) const { return ranks_[index(rank)]; }
    const Call& call_of(int rank) const { return calls_[index(at(rank).call)]; }

    // By operation: the operations that depend on it. Made once, and read in every call.
    struct Dependents {
        std::vector<std::uint32_t> first;  // by operation, into `ops`
        std::vector<std::uint32_t> ops;
    };
    static Dependents dependents_of(const Plan& plan);
    const Dependents& dependents(int rank) const
    {
        return dependents_[index(at(rank).call) * ranks_.size() + index(rank)];
    }

    const Topology& topo_;
    std::span<const Call> calls_;
    const Schedule& schedule_;
    EventQueue events_;
    Verdict verdict_;
    std::size_t unfinished_;  // ranks that have not returned from their last call
    std::size_t flying_ = 0;  // puts whose signal has not landed
    std::vector<RankState> ranks_;
    std::vector<Flight> flights_;
    std::vector<Announcement> announcements_;
    std::vector<std::uint32_t> last_flight_;  // of every rail pair
    std::vector<Dependents> dependents_;      // by call and rank
};

}  // namespace hier::model
