// SPDX-License-Identifier: BSD-3-Clause
// UCX for the whole process: one context, one device and one worker for each network choice (a rank
// has one for each of its devices: rail.hpp), shared by all teams; and the connections to
// other processes, each opened once.
//
// Connections stay until finalize(): closing one while its peer lives would be an error over there,
// and a team may end without talking to anybody.
#pragma once

#include <ucp/api/ucp.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "hier/gpu.hpp"
#include "net/devices/network_choice.hpp"
#include "net/rail_words.hpp"
#include "net/ucx/device/flush_probe.hpp"
#include "net/ucx/ucx_config.hpp"

namespace hier {

// Gets the messages that are for it, under the worker's mutex.
class MessageSink {
public:
    static constexpr unsigned id = 1;  // of UCX's active messages
    virtual void take_message(const MessageHead& head, const std::byte* data,
                              std::size_t bytes) = 0;

protected:
    ~MessageSink() = default;
};

class UcxWorker {
public:
    // Throws SetupError. (UcxWorkers has one for the whole process.)
    explicit UcxWorker(const NetworkChoice& choice);
    UcxWorker(const UcxWorker&) = delete;
    UcxWorker& operator=(const UcxWorker&) = delete;
    ~UcxWorker();

    // Held around every call that touches the worker, the functions below included.
    std::mutex& mutex() { return mutex_; }
    ucp_context_h context() const { return context_.get(); }
    ucp_worker_h handle() const { return worker_.get(); }
    const std::vector<std::byte>& address() const { return address_; }
    // Until there is nothing to do, `max` times at most.
    void progress(int max);
    SignalOrder signal_order() const { return order_; }
    const NetworkChoice& choice() const { return choice_; }
    // Does UCX know this type of memory?
    bool knows(ucs_memory_type_t type) const;

    // Has half a connection: UCX may abort when such a worker is destroyed, so the process keeps it,
    // and with it the code that UCX's own thread calls for it.
    void keep();

    // Its number, which no other one gets.
    std::uint64_t add_sink(MessageSink& sink)
    {
        sinks_[++last_sink_] = &sink;
        return last_sink_;
    }
    void remove_sink(std::uint64_t number) { sinks_.erase(number); }

    // The probe of a device, for as long as the worker lives. Throws SetupError.
    FlushProbe& probe(const gpu::Runtime& runtime, int device, ucs_memory_type_t type);

    // A hint for the user whose network cannot be connected.
    std::string doubt() const;
    bool has_connections() const { return !connections_.empty(); }
    bool is_connected(const std::vector<std::byte>& peer_address) const;
    // A new one in place of one that is broken. Throws SetupError.
    ucp_ep_h connect(const std::vector<std::byte>& peer_address);
    // Has UCX noticed that the peer has gone, or the way there? (Over TCP UCX does not tell.)
    bool is_broken(ucp_ep_h endpoint) const
    {
        return std::find(broken_.begin(), broken_.end(), endpoint) != broken_.end();
    }
    // Is any? Without the mutex.
    bool has_broken() const { return has_broken_.load(std::memory_order_acquire); }

private:
    struct ContextCleanup {
        void operator()(ucp_context_h context) const { ucp_cleanup(context); }
    };
    struct WorkerDestroy {
        void operator()(ucp_worker_h worker) const;
    };

    void make_context();
    void make_worker();
    static ucs_status_t on_message(void* worker, const void* head, std::size_t head_bytes,
                                   void* data, std::size_t bytes, const ucp_am_recv_param_t* param);

    std::mutex mutex_;
    std::atomic<bool> is_kept_{false};
    NetworkChoice choice_;
    SignalOrder order_;
    std::unique_ptr<std::remove_pointer_t<ucp_context_h>, ContextCleanup> context_;
    std::vector<ucp_ep_h> broken_;  // with room for every connection
    std::atomic<bool> has_broken_{false};
    std::map<std::uint64_t, MessageSink*> sinks_;  // messages may come as long as the worker lives
    std::uint64_t last_sink_ = 0;
    std::unique_ptr<std::remove_pointer_t<ucp_worker_h>, WorkerDestroy>
        worker_;  // destroys its connections
    std::vector<std::byte> address_;
    std::map<std::vector<std::byte>, ucp_ep_h> connections_;
    std::map<int, std::unique_ptr<FlushProbe>> probes_;  // by device
};

// While it lives UCX logs nothing of this level or a graver one, on any thread: for calls that may
// fail.
class QuietUcx {
public:
    explicit QuietUcx(ucs_log_level_t gravest_but = UCS_LOG_LEVEL_ERROR);
    ~QuietUcx();
    QuietUcx(const QuietUcx&) = delete;
    QuietUcx& operator=(const QuietUcx&) = delete;
};

// Throws SetupError with UCX's own text.
void check(ucs_status_t status, const char* what);

}  // namespace hier
