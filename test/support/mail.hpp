// SPDX-License-Identifier: BSD-3-Clause
// How ranks that are threads of one process exchange bytes during set-up.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace hier::test {

class Mail {
public:
    void send(int from, int to, const void* bytes, std::size_t size)
    {
        const auto* const first = static_cast<const std::byte*>(bytes);
        const std::lock_guard lock(mutex_);
        waiting_[{from, to}].emplace_back(first, first + size);
        arrived_.notify_all();
    }
    void receive(int from, int to, void* bytes)
    {
        std::unique_lock lock(mutex_);
        auto& queue = waiting_[{from, to}];
        arrived_.wait(lock, [&] { return !queue.empty(); });
        std::memcpy(bytes, queue.front().data(), queue.front().size());
        queue.pop_front();
    }

private:
    std::mutex mutex_;
    std::condition_variable arrived_;
    std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> waiting_;
};

// The context of a rank's bootstrap.
struct Address {
    Mail* mail;
    int rank;
};

// hier_bootstrap::exchange
inline int exchange(void* context, const void* out, std::size_t out_bytes, int to, void* in,
                    std::size_t, int from)
{
    const Address& self = *static_cast<const Address*>(context);
    self.mail->send(self.rank, to, out, out_bytes);
    self.mail->receive(from, self.rank, in);
    return 0;
}

}  // namespace hier::test
