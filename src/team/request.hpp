// SPDX-License-Identifier: BSD-3-Clause
// The calls that a team has been asked for. The team runs them one after the other, in the order of
// their starts. MPI makes that order the same on all ranks.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/cache.hpp"
#include "hier/call.hpp"
#include "team/prepared_call.hpp"

namespace hier {

class Team;

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

    // These are the team's, and also for who starts a request that is kept.
    const Call& call() const { return call_; }
    PreparedCall& prepared() { return prepared_; }
    // The same for a call that begins anew (Team::begin_anew). It is no longer good when prepared() changes.
    PreparedCall& prepared_anew() { return prepared_anew_; }
    Team& team() const { return *team_; }
    bool is_running() const
    {
        return status_.load(std::memory_order_relaxed) == Status::in_progress;
    }

private:
    friend class RequestQueue;
    friend class PostBox;
    void begin(const Listener& listener)
    {
        listener_ = listener;
        status_.store(Status::in_progress, std::memory_order_relaxed);
        is_free_.store(false, std::memory_order_relaxed);
    }
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

    // In one cache line, because one thread starts the call and another one may end it.
    alignas(cache_line) std::atomic<Status> status_{Status::ok};
    std::atomic<bool> is_free_{true};
    bool is_kept_ = false;     // for calls that are started again and again
    Request* next_ = nullptr;  // in the queue, or in the post box
    Listener listener_;
    alignas(cache_line) Call call_{};
    Team* team_ = nullptr;
    PreparedCall prepared_, prepared_anew_;
};

// The team's mutex protects all but Request::test, and a request that waits in a PostBox. Only take() and keep()
// allocate, when more calls are under way than ever before.
class RequestQueue {
public:
    bool empty() const { return first_ == nullptr; }
    // A request for this call. It stays free until push() puts it behind all others, so that a call which ends in its
    // start needs no push(). Until then, nobody else may take one.
    Request& take(Call call)
    {
        Request& request = take_free();
        request.take(std::move(call));
        return request;
    }
    // The same, for a request that no other call takes.
    Request& keep(Call call, Team& team)
    {
        Request& request = take(std::move(call));
        request.is_kept_ = true;
        request.team_ = &team;
        request.is_free_.store(false, std::memory_order_relaxed);
        return request;
    }
    // For a request of keep(), whose call is over.
    void change(Request& request, Call call) { request.take(std::move(call)); }
    void push(Request& request, const Listener& listener)
    {
        request.begin(listener);
        append(request);
    }
    // For one that has begun.
    void append(Request& request)
    {
        (empty() ? first_ : last_->next_) = &request;
        last_ = &request;
        request.next_ = nullptr;
    }
    Request& front() const { return *first_; }
    // The first call is over.
    void pop(Status status)
    {
        Request& over = *first_;
        first_ = over.next_;
        over.end(status);
    }

private:
    Request& take_free()
    {
        for (const auto& request : all_)
            if (request->is_free_.load(std::memory_order_acquire)) return *request;
        return *all_.emplace_back(std::make_unique<Request>());
    }

    Request* first_ = nullptr;  // runs
    Request* last_ = nullptr;
    std::vector<std::unique_ptr<Request>> all_;
};

}  // namespace hier
