// SPDX-License-Identifier: BSD-3-Clause
// The calls that a team has been asked for. The team runs them one after the other, in the order of
// their starts. MPI makes that order the same on all ranks.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "hier/call.hpp"
#include "team/prepared_call.hpp"

namespace hier {

// Hears that a call has ended well, in the thread that moved it last and just before the request says so.
// Not of a call that has ended in its start.
struct Listener {
    void (*hear)(void* context) = nullptr;  // with the team's mutex
    void* context = nullptr;
};

class Request {
public:
    // For any thread. After any status but in_progress the request may serve another call, unless it
    // is kept.
    Status test()
    {
        const Status status = status_.load(std::memory_order_acquire);
        if (status != Status::in_progress && !is_kept_)
            is_free_.store(true, std::memory_order_release);
        return status;
    }

    // These are the team's.
    const Call& call() const { return call_; }
    PreparedCall& prepared() { return prepared_; }
    bool is_running() const
    {
        return status_.load(std::memory_order_relaxed) == Status::in_progress;
    }

private:
    friend class RequestQueue;
    // What has been prepared for the last call serves the next one if that is the same.
    void take(Call call)
    {
        if (call == call_) return;
        call_ = std::move(call);
        prepared_.stays = false;
    }
    // So whoever has seen the end may start the next call at once, with another listener.
    void end(Status status)
    {
        if (status == Status::ok && listener_.hear != nullptr) listener_.hear(listener_.context);
        status_.store(status, std::memory_order_release);
    }
    Call call_{};
    Listener listener_;
    PreparedCall prepared_;
    bool is_kept_ = false;  // for calls that are started again and again
    std::atomic<Status> status_{Status::ok};
    std::atomic<bool> is_free_{true};
};

// The team's mutex protects all but Request::test. The queue allocates only when more
// calls are under way than ever before.
class RequestQueue {
public:
    bool empty() const { return waiting_.empty(); }
    // A request for this call. push() puts it behind all others.
    Request& take(Call call)
    {
        Request& request = take_free();
        request.take(std::move(call));
        return request;
    }
    // The same, for a request that no other call takes.
    Request& keep(Call call)
    {
        Request& request = take(std::move(call));
        request.is_kept_ = true;
        request.is_free_.store(false, std::memory_order_relaxed);
        return request;
    }
    // For a request of keep(), whose call is over.
    void change(Request& request, Call call) { request.take(std::move(call)); }
    // Does not throw.
    void push(Request& request, const Listener& listener)
    {
        waiting_.push_back(&request);
        request.listener_ = listener;
        request.status_.store(Status::in_progress, std::memory_order_relaxed);
        request.is_free_.store(false, std::memory_order_relaxed);
    }
    Request& front() const { return *waiting_.front(); }
    // The first call is over.
    void pop(Status status)
    {
        waiting_.front()->end(status);
        waiting_.erase(waiting_.begin());
    }

private:
    Request& take_free()
    {
        for (const auto& request : all_)
            if (request->is_free_.load(std::memory_order_acquire)) return *request;
        waiting_.reserve(all_.size() + 1);
        return *all_.emplace_back(std::make_unique<Request>());
    }

    std::vector<std::unique_ptr<Request>> all_;
    std::vector<Request*> waiting_;  // the first request runs
};

}  // namespace hier
