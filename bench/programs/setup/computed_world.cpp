// SPDX-License-Identifier: BSD-3-Clause
#include "computed_world.hpp"

#include <bit>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "team/introduction.hpp"

namespace bench {
namespace {

constexpr std::size_t vote_bytes = 16;  // in front of every message (Group)

}  // namespace

// Messages to one rank, by sender.
struct ComputedWorld::Inbox {
    std::mutex mutex;
    std::condition_variable arrived;
    std::map<int, std::deque<std::vector<std::byte>>> waiting;
};

struct ComputedWorld::Rank {
    ComputedWorld* world = nullptr;
    int number = 0;
    Inbox inbox;
    std::size_t messages = 0, bytes = 0;
    int introductions = 0;  // messages with blocks that were exchanged so far
};

ComputedWorld::ComputedWorld(int ranks, int node_size) : ranks_(ranks), node_size_(node_size)
{
    for (int r = 0; r < node_size; r++) {
        Rank& rank = *here_.emplace_back(std::make_unique<Rank>());
        rank.world = this;
        rank.number = r;
    }
}

ComputedWorld::~ComputedWorld() = default;

hier_bootstrap ComputedWorld::bootstrap(int rank)
{
    return {here_[static_cast<std::size_t>(rank)].get(), rank, ranks_, exchange, "bench", nullptr};
}

std::size_t ComputedWorld::messages(int rank) const
{
    return here_[static_cast<std::size_t>(rank)]->messages;
}

std::size_t ComputedWorld::bytes(int rank) const
{
    return here_[static_cast<std::size_t>(rank)]->bytes;
}

int ComputedWorld::exchange(void* context, const void* out, std::size_t out_bytes, int to, void* in,
                            std::size_t, int from)
{
    Rank& self = *static_cast<Rank*>(context);
    ComputedWorld& world = *self.world;
    const auto* const sent = static_cast<const std::byte*>(out);
    auto* const received = static_cast<std::byte*>(in);
    self.messages++;
    self.bytes += out_bytes;
    if (to < world.node_size_) {
        Inbox& there = world.here_[static_cast<std::size_t>(to)]->inbox;
        const std::lock_guard lock(there.mutex);
        there.waiting[self.number].emplace_back(sent, sent + out_bytes);
        there.arrived.notify_one();
    }
    if (from >= world.node_size_) {
        world.compute(self, sent, out_bytes, from, received);
    } else {
        std::unique_lock lock(self.inbox.mutex);
        auto& queue = self.inbox.waiting[from];
        self.inbox.arrived.wait(lock, [&] { return !queue.empty(); });
        std::memcpy(received, queue.front().data(), queue.front().size());
        queue.pop_front();
    }
    self.introductions += out_bytes > vote_bytes ? 1 : 0;
    return 0;
}

// Block i of a message is of the rank i places behind the sender. The first exchange with blocks is
// that of introductions. The ranks that are here differ in nothing, because they are one process.
void ComputedWorld::compute(Rank& self, const std::byte* out, std::size_t bytes, int from,
                            std::byte* in)
{
    std::memcpy(in, out, bytes);
    if (self.introductions >= static_cast<int>(std::bit_width(static_cast<unsigned>(ranks_ - 1))))
        return;
    hier::Introduction own;
    if (bytes == vote_bytes) return;
    std::memcpy(&own, out + vote_bytes, sizeof own);
    const std::size_t blocks = (bytes - vote_bytes) / sizeof own;
    for (std::size_t i = 0; i < blocks; i++) {
        const int rank = (from + static_cast<int>(i)) % ranks_;
        hier::Introduction other = own;
        other.record.node_key += static_cast<std::uint64_t>(rank / node_size_);
        std::memcpy(in + vote_bytes + i * sizeof own, &other, sizeof other);
    }
}

}  // namespace bench
