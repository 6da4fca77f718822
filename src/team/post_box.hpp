// SPDX-License-Identifier: BSD-3-Clause
// Requests of any teams, from threads that have no time to wait for a team's lock. A post takes two cache lines from
// the core that has ended the last call: that of the newest post, and the request's.
#pragma once

#include <atomic>
#include <mutex>

#include "base/cache.hpp"
#include "team/request.hpp"

namespace hier {

class PostBox {
public:
    // The request is one of RequestQueue::keep(), whose call is over. Its call has started when this returns.
    void post(Request& request, const Listener& listener)
    {
        request.begin(listener);
        request.next_ = newest_.load(std::memory_order_relaxed);
        while (!newest_.compare_exchange_weak(request.next_, &request)) {
        }
    }
    // No: all that was posted before has been taken.
    bool has_posts() const { return newest_.load() != nullptr || is_sorting_.load(); }
    // Offers the posts to `take`, the oldest first. Those for which it returns false stay, and so do later ones of the
    // same team. `take` may write Request::next_, and take a lock by trying alone.
    template <class Take> void offer(const Take& take)
    {
        const std::lock_guard lock(mutex_);
        is_sorting_.store(true);
        append(newest_.exchange(nullptr));
        Request* last = nullptr;  // of those that stay
        for (Request* request = oldest_; request != nullptr;) {
            Request* const after = request->next_;
            if (stays(*request, last) || !take(*request)) {
                (last == nullptr ? oldest_ : last->next_) = request;
                last = request;
            }
            request = after;
        }
        (last == nullptr ? oldest_ : last->next_) = nullptr;
        is_sorting_.store(oldest_ != nullptr);
    }

private:
    void append(Request* newest)
    {
        Request* first = nullptr;
        while (newest != nullptr) {
            Request* const before = newest->next_;
            newest->next_ = first;
            first = newest;
            newest = before;
        }
        Request** end = &oldest_;
        while (*end != nullptr) end = &(*end)->next_;
        *end = first;
    }
    // Does an older post of its team stay? `last`: the last one that does.
    bool stays(const Request& request, const Request* last) const
    {
        if (last == nullptr) return false;
        for (const Request* older = oldest_;; older = older->next_) {
            if (older->team_ == request.team_) return true;
            if (older == last) return false;
        }
    }

    alignas(cache_line) std::atomic<Request*> newest_{nullptr};
    alignas(cache_line) std::mutex mutex_;  // of the next two
    // Some posts are on their way, or stay. Any thread reads it.
    std::atomic<bool> is_sorting_{false};
    Request* oldest_ = nullptr;  // of those that stay
};

}  // namespace hier
