// SPDX-License-Identifier: BSD-3-Clause
// The transfers of a lane that are on their way: requests of UCX, their order, their completion. All of it
// is used under the worker's mutex, except for report().
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "net/ucx/lane/lane_state.hpp"

namespace hier {

class InFlight;
struct Flight;

// Hears when a flight of its own is complete, and releases it.
class FlightEnd {
public:
    virtual void ended(Flight& flight) = 0;

protected:
    ~FlightEnd() = default;
};

// One thing on its way: data and its signal, an announcement and its ready word, a message, or a flush.
struct Flight {
    static constexpr std::uint32_t no_op = ~0u;

    InFlight* owner = nullptr;  // null: the lane is gone
    std::uint32_t op = no_op;
    int peer = 0;
    int parts = 0;  // requests not yet completed
    bool signal_after_flush = false;
    bool is_worker_flush = false;
    bool is_aside = false;  // nobody waits for it
    ucs_memory_type_t data_type = UCS_MEMORY_TYPE_HOST;
    FlightEnd* end =
        nullptr;  // of a flush of device memory: `signal` goes there and back to `read`
    std::uint64_t signal_to = 0;
    std::uint64_t signal = 0;  // the word itself: stays put until it is sent
    std::uint64_t read = 0;
    MessageHead head{};  // of a message: likewise
    Status status = Status::ok;
};

// The parameters that every request of a flight needs.
ucp_request_param_t request_of(Flight& flight);

class InFlight {
public:
    // `depth`: puts.
    InFlight(LaneState& lane, int depth);

    Flight& take(int peer, std::uint32_t op);
    void release(Flight& flight);

    // `bytes` bytes of data (none for 0), then the flight's signal behind them, if it has one. UCX
    // tells only when a whole put is done. So where the order allows it, large data goes in parts.
    Status launch(Flight& flight, const void* data, std::size_t bytes, std::uint64_t to,
                  const UcxRemoteKey& key);
    // One word into our slot on the peer's board.
    Status send_word(int peer, std::uint32_t op, std::size_t offset, std::uint64_t word);
    // The same as data: a signal would be held back where a put has failed.
    void put_word(int peer, std::uint64_t to, const std::uint64_t& word);
    // Data and signal in one (eager_inbox.hpp).
    Status send_message(int peer, std::uint32_t op, MessageHead head, const std::byte* data,
                        std::size_t bytes);
    // Until the peer has acknowledged everything.
    void flush_peer(int peer);
    // True: nothing that this process sends is left in the worker. False: a flush is on its way.
    bool flush_worker(int peer);

    // Counts a request of the flight. True when it is complete at once.
    bool track(Flight& flight, ucs_status_ptr_t request, const char* what);
    void part_done(Flight& flight);

    // The worker's flush waits for other teams' peers, too, and touches nobody's buffers.
    std::size_t awaited() const { return count_ - count_aside_ - (is_flushing_ ? 1 : 0); }
    // Takes the ops that are done, for report().
    void collect()
    {
        std::swap(done_, reported_);
        reported_move_ = std::exchange(has_moved_, false);
    }
    void report(Completions& completions);
    // The lane goes away: UCX may still complete what is left.
    void abandon();

    const LaneState& lane() const { return lane_; }

private:
    struct Done {
        std::uint32_t op;
        Status status;
    };

    bool post(Flight& flight, const void* data, std::size_t bytes, std::uint64_t to,
              const UcxRemoteKey& key);
    void post_data(Flight& flight, const void* data, std::size_t bytes, std::uint64_t to,
                   const UcxRemoteKey& key);
    bool post_flush(Flight& flight);
    bool signal_flushed(Flight& flight);
    bool may_signal(Flight& flight);

    LaneState& lane_;
    std::vector<std::unique_ptr<Flight>> flights_;
    std::vector<Flight*> free_;
    std::vector<Done> done_;  // whichever team progresses the worker fills it
    std::vector<Done> reported_;
    bool has_moved_ = false;  // a part of a transfer is done
    bool reported_move_ = false;
    std::size_t count_ = 0, count_aside_ = 0;
    bool is_flushing_ = false;  // the worker, for a drain
};

}  // namespace hier
