// SPDX-License-Identifier: BSD-3-Clause
// The calls that a team has been asked for. The team runs them one after the other, in the order of
// their starts. MPI makes that order the same on all ranks.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "hier/call.hpp"

namespace hier {

class Request {
public:
    // For any thread. After any status but in_progress the request may serve another call.
    Status test()
    {
        const Status status = status_.load(std::memory_order_acquire);
        if (status != Status::in_progress) is_free_.store(true, std::memory_order_release);
        return status;
    }

private:
    friend class RequestQueue;
    Call call_{};
    std::atomic<Status> status_{Status::ok};
    std::atomic<bool> is_free_{true};
};

// The team's mutex protects all but Request::test. The queue allocates only when more
// calls are under way than ever before.
class RequestQueue {
public:
    bool empty() const { return waiting_.empty(); }
    // Puts a call behind all others.
    Request& push(Call call)
    {
        Request& request = take_free();
        waiting_.push_back(&request);
        request.call_ = std::move(call);
        request.status_.store(Status::in_progress, std::memory_order_relaxed);
        request.is_free_.store(false, std::memory_order_relaxed);
        return request;
    }
    const Call& front() const { return waiting_.front()->call_; }
    // The first call is over.
    void pop(Status status)
    {
        waiting_.front()->status_.store(status, std::memory_order_release);
        waiting_.erase(waiting_.begin());
    }
    // Removes the first call as if it had never been there. Its caller hears of the error in
    // another way.
    void withdraw()
    {
        Request& first = *waiting_.front();
        waiting_.erase(waiting_.begin());
        first.status_.store(Status::ok, std::memory_order_relaxed);
        first.is_free_.store(true, std::memory_order_release);
    }

private:
    Request& take_free()
    {
        for (const auto& request : all_)
            if (request->is_free_.load(std::memory_order_acquire)) return *request;
        return *all_.emplace_back(std::make_unique<Request>());
    }

    std::vector<std::unique_ptr<Request>> all_;
    std::vector<Request*> waiting_;  // the first request runs
};

}  // namespace hier
