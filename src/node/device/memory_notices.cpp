// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/memory_notices.hpp"

#include <algorithm>

namespace hier {

void MemoryNotices::add(const NodeSocket::Address& peer, const NodeSocket::Entry& memory)
{
    Due& due = due_[peer.process];
    due.peer = peer;
    due.memory.push_back(memory);
}

void MemoryNotices::send()
{
    for (auto at = due_.begin(); at != due_.end();) {
        auto& [peer, memory] = at->second;
        while (!memory.empty()) {
            const std::size_t count = std::min(memory.size(), NodeSocket::max_entries);
            const std::span last(memory.end() - static_cast<std::ptrdiff_t>(count), memory.end());
            const auto sent = NodeSocket::instance().try_send(peer, what_, last, {});
            if (sent == NodeSocket::Sent::not_now) break;
            memory.resize(memory.size() - count);
        }
        at = memory.empty() ? due_.erase(at) : std::next(at);
    }
}

}  // namespace hier
