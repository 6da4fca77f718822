// SPDX-License-Identifier: BSD-3-Clause
// A network inside one process. It moves bytes as late and in as much disorder as the Transport
// interface allows, and records the first rule that a rank breaks.
//
//     put --> reading --> on the road ----> arriving --> landed: bytes and signal at the receiver
//             (source     (rail only: moved by   (moved by the
//             in use)     the sender's progress, receiver's
//                         or freed by drain)     progress)
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "hier/transport.hpp"
#include "net/network_transport.hpp"

namespace hier::test {

enum class Call { begin, announce, ready, put, copy, drain, progress };
inline constexpr Call every_call[] = {Call::begin, Call::announce, Call::ready,   Call::put,
                                      Call::copy,  Call::drain,    Call::progress};
inline constexpr std::size_t call_kinds = std::size(every_call);
const char* to_string(Call call);

// All values are per cent.
struct Weather {
    std::uint64_t seed = 1;
    int immediate = 50;  // operations that are done when the call returns
    int idle = 30;       // progress calls in which nothing happens
};

// One failure: in the `nth` call (from 0) of this kind by `rank` on `level`.
struct Sabotage {
    enum class How {
        refused,            // the call returns an error; begin, on odd ranks, has no memory
        fails_later,        // put, copy, drain: accepted, completed with an error
        connection_lost,    // this and all later puts to that peer never arrive; nobody is told
        connection_broken,  // the same, and nothing arrives from the peer; both ranks are told
        streams,            // put: bytes move for the time `lasts`, then the put is done
        stands_still        // put: no byte moves for the time `lasts`, then the put is done
    };
    int rank;
    Level level;
    Call call;
    std::size_t nth;
    How how = How::refused;
    std::chrono::seconds lasts{0};
};

struct Parcel {
    std::vector<std::byte> bytes;
    std::size_t offset;
    std::uint64_t sequence;
    std::uint32_t count;
    std::size_t total;   // of the sender's call
    std::size_t number;  // of this pair's parcels
    std::size_t after;   // the parcel lands only after all parcels with lower numbers
    bool is_kept;        // until the receiver is in that call
};

// The ranks of one node or one rail. [receiver][sender] throughout.
struct FakeGroup {
    struct Announced {
        std::uint64_t sequence = 0;
        Region into;
        std::size_t total = 0;  // of the receiver's call
        bool is_bounce =
            false;  // it is still there after the call, and `into` is the sender's place
    };
    struct Lane {
        Announced announced;
        std::uint64_t entered = 0;  // the last call that the receiver has said to be in
        std::uint64_t signal = 0;
        std::deque<Parcel> road;      // parcels that the sender still has to move
        std::deque<Parcel> arriving;  // parcels that need only the receiver
        std::size_t sent = 0;         // parcels
        bool lost = false;
        bool broken = false;
        bool stopped = false;  // the sender has said that it writes no more
        bool differs = false;  // a parcel was for a buffer of another size
        // A parcel counts only if a rank waits for it.
        bool is_empty() const
        {
            return road.empty() && std::all_of(arriving.begin(), arriving.end(),
                                               [](const Parcel& p) { return p.is_kept; });
        }
    };
    // The state of a receiver. gone: it has entered a call and left again. gave_up: it has left,
    // and others might still write to it.
    enum class Place { here, gone, gave_up };
    explicit FakeGroup(std::size_t ranks)
        : lanes(ranks, std::vector<Lane>(ranks)), heartbeats(ranks), places(ranks, Place::here)
    {
    }
    std::vector<std::vector<Lane>> lanes;
    std::vector<std::uint64_t> heartbeats;
    std::vector<Place> places;
    Status failure = Status::ok;
};

class FakeNetwork {
public:
    // `depth`: how many puts a rank may have in flight on its rail.
    FakeNetwork(const Weather& weather, std::optional<Sabotage> sabotage, int depth = 4)
        : depth_(static_cast<std::size_t>(depth)), weather_(weather), sabotage_(sabotage),
          random_(weather.seed)
    {
    }
    bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
    std::size_t below(std::size_t n) { return random_() % n; }
    const Weather& weather() const { return weather_; }
    std::size_t depth() const { return depth_; }

    // Is it this call? At most once.
    std::optional<Sabotage::How> strikes(int rank, Level level, Call call);
    bool has_struck() const { return struck_; }
    std::chrono::seconds lasts() const { return sabotage_->lasts; }

    // The first broken rule; empty if there is none.
    void blame(const std::string& rule)
    {
        if (fault_.empty()) fault_ = rule;
    }
    const std::string& fault() const { return fault_; }

private:
    std::size_t depth_;
    Weather weather_;
    std::optional<Sabotage> sabotage_;
    std::mt19937_64 random_;
    std::size_t calls_ = 0;  // of the kind that is sabotaged
    bool struck_ = false;
    std::string fault_;
};

// One rank's end of the network, on either level. The rail has no eager calls and needs no
// registration.
class FakeTransport : public NetworkTransport {
public:
    FakeTransport(FakeNetwork& network, FakeGroup& group, Level level, int rank, int index)
        : network_(network), group_(group), level_(level), rank_(rank),
          me_(static_cast<std::size_t>(index)), traits_{.name = "a fake network",
                                                        .devices = "fake0",
                                                        .rate = {10e9, 1e-6},
                                                        .max_in_flight =
                                                            static_cast<int>(network.depth())}
    {
    }

    const NetworkTraits& traits() const override { return traits_; }
    void keep(const std::shared_ptr<const void>&) override {}
    bool register_buffers(const Binding&) override
    {
        registrations++;
        return true;
    }
    static inline std::size_t registrations = 0;  // that were asked for, by all ranks
    bool register_sources(const Binding&, bool) override { return true; }
    bool has_failed() override { return group_.failure != Status::ok; }
    Status connect(std::vector<int>) override { return Status::ok; }

    Status begin(const Binding& binding) override;
    Status announce(int peer) override;
    Status enter(int peer) override;
    Status announced(int peer) override;
    Status entered(int peer) override;
    Status put(const Transfer& transfer) override;
    Status copy(const Transfer& transfer) override;
    Status drain(int peer, std::uint32_t op) override;
    std::uint32_t arrived(int peer) override;
    bool is_lost(int peer) override { return to(peer).broken; }
    Status progress(Completions& completions) override;
    bool idle() override;
    void end() override;
    void tell(std::uint32_t heartbeat) override;
    std::uint32_t heard() override;
    bool has_ended(int peer) override { return level_ == Level::node && peer == dead; }
    int dead = -1;           // a test says so: a peer whose process has ended
    std::size_t passes = 0;  // calls of progress()
    bool have_parts_come() override { return std::exchange(parts_have_come, false); }
    bool parts_have_come = false;  // a test says so
    void raise(Status status) override;
    void stop() override;
    bool may_write(int peer, std::uint32_t count) override;

private:
    struct Flight {
        Transfer transfer;
        Call call;
        bool fails;
        std::vector<std::size_t> after;  // by lane: puts that were done when this one began
        std::chrono::steady_clock::time_point ends{};  // not before this time
        bool streams = false;
    };
    using Lane = FakeGroup::Lane;

    void blame(const char* rule) const;
    bool strikes(Call call);
    bool is_publish() const { return level_ == Level::node && binding_.publish; }
    std::vector<Lane*> lanes_to(int peer);
    void check_put(const Transfer& transfer);
    void send(const Flight& flight);
    bool has_bounce() const { return binding_.has_bounce(); }
    Region target_for(std::size_t peer) const;
    Extent target_of(const Transfer& transfer, const Lane& lane) const;
    void check_target(const Flight& flight);
    void break_connection(int peer);
    Status start(const Flight& flight);
    void perform(const Flight& flight);
    const std::byte* source(const Transfer& transfer) const;
    bool may_go(std::size_t flight) const;
    void stream(Completions& completions) const;
    void fly(Completions& completions);
    void move_road();
    static bool may_land(const Lane& lane, std::size_t parcel);
    void land();
    void land(Lane& lane, std::size_t parcel);
    bool is_early(const Lane& lane, std::size_t parcel) const;
    Lane& to(int peer) { return group_.lanes[static_cast<std::size_t>(peer)][me_]; }

    FakeNetwork& network_;
    FakeGroup& group_;
    Level level_;
    int rank_;
    std::size_t me_;
    NetworkTraits traits_;
    Binding binding_{};
    bool bound_ = false;
    bool has_spoken_ = false;  // since it was bound: it has put, announced or entered
    bool raised_ = false;
    bool stopped_ = false;
    std::chrono::steady_clock::time_point raised_at_;
    bool fails_later_ = false;
    std::deque<Flight> flights_;
};

}  // namespace hier::test
