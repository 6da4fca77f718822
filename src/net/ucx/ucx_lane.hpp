// SPDX-License-Identifier: BSD-3-Clause
// The rail level over one network device, a lane (rail.hpp): UCP puts from our buffers straight into
// the rail peers' receive buffers, each followed by a signal.
//
// Every rank owns a board: for each rail peer a slot that only this peer writes.
//
//     peer's slot on our board:   arrivals | ready | heartbeat | goodbye | stopped
//                                 | announcement {address, length, version, rkey}
//
//   receiver -> sender   announcement, when buffer or rkey changed; then ready = sequence
//   sender -> receiver   data, then arrivals = {sequence, count}; several in flight
//
// Small calls are eager: data and signal are one message, which UCX hands to take_message() over
// there; what comes before its call is kept. (src/net/ucx/ucx_eager.cpp)
//
// An announcement is overwritten only in the next collective, which its writer enters after
// everything that the sender put by means of it has arrived.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hier/topology.hpp"
#include "hier/transport.hpp"
#include "net/network_transport.hpp"
#include "net/ucx/device/rail_direct.hpp"
#include "net/ucx/rail_board.hpp"
#include "net/ucx/ucx_memory.hpp"
#include "net/ucx/ucx_worker.hpp"
#include "team/group.hpp"

namespace hier {

class UcxLane final : private MessageSink {
public:
    // `is_partner[i]`: this rank exchanges anything with rank i of the rail's group, which is on another
    // node, and i with it. `board` has a slot for each.
    UcxLane(std::shared_ptr<UcxWorker> worker, RailBoard board, std::vector<bool> is_partner,
            int depth);
    // Collective over the rail's group: connects to every partner and proves it with
    // a first signal, within a bound. Throws on all ranks or on none. `keep_alive` is called while
    // it waits, for the caller's own communication. After a failure, too, the rail is to be retired.
    void connect(const Group& group, void (*keep_alive)());
    // Memory that peers may write into: not given back before they have left, as the board.
    void keep(std::shared_ptr<const void> memory) { kept_ = std::move(memory); }
    // Lets the network read and write device memory itself, where it can. `setting` is a
    // HIER_GPU_DIRECT_*. Once, before the first collective.
    void allow_direct(int setting, const gpu::Runtime& runtime);
    // What becomes of device memory; "" before allow_direct().
    const std::string& device_memory() const { return device_memory_; }
    // Registers the buffers of the collective that begins next, which is not eager and has no bounce
    // buffer. False: the network cannot reach them all, and it needs one.
    bool register_buffers(const Binding& binding);
    // The same for one that is eager, in memory of the host: only what is sent, which is in the
    // receive buffer, too, if others' shards are passed on.
    bool register_sources(const Binding& binding, bool is_passed_on);
    // One step of taking leave (retired_lanes.hpp). True: nobody writes to our board any more.
    bool leave();
    UcxLane* next_retired = nullptr;  // likewise
    ~UcxLane();

    // As Transport's.
    Status begin(const Binding& binding);
    Status announce(int peer);
    Status enter(int peer);
    Status announced(int peer);
    Status entered(int peer);
    Status put(const Transfer& transfer);
    Status drain(int peer, std::uint32_t op);
    std::uint32_t arrived(int peer);
    bool is_lost(int peer);
    Status progress(Completions& completions);
    // Has a peer raised a failure?
    bool has_failed() { return RailBoard::read(board_.failure()) != 0; }
    bool idle();
    void end();
    void tell(std::uint32_t heartbeat);
    std::uint32_t heard();
    void raise(Status status);
    void stop();
    bool may_write(int peer, std::uint32_t count);
    const NetworkChoice& choice() const { return worker_->choice(); }
    // Does what goes to a peer arrive there in its order?
    bool is_in_order() const { return worker_->signal_order() != SignalOrder::by_flush; }
    // May device memory be put from and to without landing in the host's?
    bool reaches_devices() const { return direct_ != nullptr; }
    // Of one put, by UCX's own account of the device; after connect().
    NetworkRate network_rate() const;

private:
    static constexpr std::uint32_t no_op = ~0u;

    struct Peer {
        ucp_ep_h endpoint = nullptr;  // none for those who are no partners
        std::uint64_t board = 0;      // address of our slot on the peer's board
        std::uint64_t failure = 0;    // address of its failure word
        std::uint64_t sink = 0;       // of its messages
        UcxRemoteKey board_key;
        std::uint64_t let_in = 0;  // the last collective in which it was announced to the peer
        std::uint64_t told = 0;    // version of our announcement that the peer has
        std::uint64_t known = 0;   // version of the peer's announcement that buffer_key is for
        UcxRemoteKey buffer_key;
        std::uint64_t last_signal = 0;  // sent to the peer
        std::uint64_t seen_ready = 0;   // of our slot for it: read()
        std::uint64_t seen_arrivals = 0;
        std::uint64_t called = 0;  // highest eager call that the peer is in
        std::uint64_t got = 0;     // Signal: of its messages
        bool lost = false;  // a transfer has failed: what is signalled later would cover for it
    };
    // Something on its way: data and its signal, an announcement and its ready word, or a drain.
    struct Flight {
        UcxLane* rail = nullptr;
        std::uint32_t op = no_op;
        int peer = 0;
        int parts = 0;  // requests not yet completed
        bool signal_after_flush = false;
        bool is_worker_flush = false;
        bool is_probe = false;      // of RailFlush: `signal` goes to the device and back to `read`
        bool is_on_device = false;  // the data
        std::uint64_t signal_to = 0;
        std::uint64_t signal = 0;  // the word itself: stays put until it is sent
        std::uint64_t read = 0;
        MessageHead head{};  // of a message: likewise
        Status status = Status::ok;
    };
    struct Done {
        std::uint32_t op;
        Status status;
    };

    // A message of a later call than the one that we are in.
    struct Early {
        MessageHead head;
        std::vector<std::byte> data;
    };
    Status send_message(int peer, std::uint32_t op, MessageHead head, const std::byte* data,
                        std::size_t bytes);
    Status drain_messages(int peer, std::uint32_t op);
    void take_message(const MessageHead& head, const std::byte* data, std::size_t bytes) override;
    void keep_early(const MessageHead& head, const std::byte* data, std::size_t bytes);
    void take_early();

    void put_word(int peer, std::uint64_t to, const std::uint64_t& word);
    Status send_word(int peer, std::uint32_t op, std::size_t offset, std::uint64_t word);
    static void on_complete(void* request, ucs_status_t status, void* user_data);

    Flight& take_flight(int peer, std::uint32_t op);
    Status launch(Flight& flight, const void* data, std::size_t bytes, std::uint64_t to,
                  const UcxRemoteKey& key);
    bool post(Flight& flight, const void* data, std::size_t bytes, std::uint64_t to,
              const UcxRemoteKey& key);
    bool post_flush(Flight& flight);
    void fence(Flight& flight);
    bool signal_flushed(Flight& flight);
    bool track(Flight& flight, ucs_status_ptr_t request, const char* what);
    void part_done(Flight& flight);
    bool may_signal(Flight& flight);
    bool is_missed(const Flight& flight) const;
    static void report(const Flight& flight, const char* what, ucs_status_t status);
    void release(Flight& flight);
    void progress_worker(int most);
    void abandon_flights();

    const char* why_out_of_reach(const Binding& binding);
    bool give_up(const char* cause);
    const char* enter(UcxMemory& memory, const Region& region);

    std::uint64_t read(std::uint64_t& word, std::uint64_t& seen);
    std::uint32_t landed(std::size_t peer);
    std::uint32_t flushed(std::size_t peer);
    void start_flush();
    void probe();
    void probe_done(Flight& flight);

    void exchange_boards(const Group& group);
    void require_room(const std::vector<std::vector<std::byte>>& all) const;
    void reach_next(std::size_t self, const std::vector<std::vector<std::byte>>& all) const;
    void greet(const Group& group, void (*keep_alive)());
    void send_greetings();

    std::shared_ptr<UcxWorker> worker_;
    RailBoard board_;
    std::vector<bool> is_partner_;
    std::vector<Peer> peers_;
    std::vector<std::unique_ptr<Flight>> flights_;
    std::vector<Flight*> free_flights_;
    std::vector<Done> done_;  // filled under the worker's mutex, by whichever team turns it
    std::vector<Done> reported_;
    std::size_t in_flight_ = 0;
    // The worker's flush waits for other teams' peers, too, and touches nobody's buffers.
    std::size_t awaited() const { return in_flight_ - (is_flushing_ ? 1 : 0); }

    Binding binding_{};
    bool is_bound_ = false;     // a collective is running
    std::uint64_t sink_ = 0;    // ours
    std::vector<Early> early_;  // as many as ever waited at a time; those in use come first
    std::vector<Early> taken_;
    std::size_t early_used_ = 0;
    UcxMemory memory_;       // the receive buffer of the running collective
    UcxMemory source_;       // its send buffer, where that is no part of it
    bool has_told_ = false;  // of the host's memory that could not be
    std::vector<std::byte> packed_key_;
    Announcement announcement_{};
    std::uint64_t announced_id_ = 0;      // of device memory: whose announcement that is
    std::unique_ptr<RailDirect> direct_;  // none: device memory is staged
    bool needs_flush_ = false;            // what lands in the running collective
    std::string device_memory_;
    std::shared_ptr<const void> kept_;
    std::uint64_t failure_word_ = 0;
    bool raised_ = false;
    bool is_flushing_ = false;         // the worker, for a drain
    bool is_known_ = false;            // peers have our address and may connect
    Status own_failure_ = Status::ok;  // of something that no op waits for
    enum class Leaving { no, flushing, gone } leaving_ = Leaving::no;
    std::size_t flushed_peers_ = 0, left_peers_ = 0;  // the first ones
};

}  // namespace hier
