// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/lane/call_buffers.hpp"

#include <cstring>

#include "base/log.hpp"
#include "base/statistics.hpp"
#include "gpu/runtime.hpp"

namespace hier {

bool CallBuffers::register_buffers(const Binding& binding)
{
    const std::lock_guard lock(lane_.worker->mutex());
    const char* const cause = why_out_of_reach(binding);
    if (cause == nullptr) return true;
    device_.end();
    return give_up(cause);
}

// UCX always copies messages of up to this size when it sends them. Up to the size from which it expects
// registering to be cheaper it copies longer ones, too, but that size is its own affair.
bool CallBuffers::register_sources(const Binding& binding, bool is_passed_on)
{
    constexpr std::size_t always_copied = 256;
    const std::size_t max = is_passed_on ? binding.receive.length : binding.send.length;
    if (is_tcp(lane_.worker->choice()) || max <= always_copied) return true;
    const std::lock_guard lock(lane_.worker->mutex());
    const char* cause = is_passed_on ? enter(receive_, binding.receive.whole()) : nullptr;
    const bool is_entered = is_passed_on && contains(binding.receive, binding.send);
    if (cause == nullptr && !is_entered) cause = enter(send_, binding.send.whole());
    return cause == nullptr || give_up(cause);
}

void CallBuffers::reset()
{
    receive_.reset();
    send_.reset();
}

bool CallBuffers::give_up(const char* cause)
{
    reset();
    if (*cause != '\0' && !has_told_)
        log(HIER_LOG_INFO,
            "UCX cannot register a buffer of the host's memory: %s; such ones go through memory "
            "that it can",
            cause);
    has_told_ = has_told_ || *cause != '\0';
    return false;
}

// Null: it can reach all. "": device memory is out of reach, and the user has been told the cause.
const char* CallBuffers::why_out_of_reach(const Binding& binding)
{
    const Region &receive = binding.receive, &send = binding.send;
    const bool has_device = is_of_device(receive.memory) || is_of_device(send.memory);
    if (has_device && !device_.take(binding, receive_, key_)) return "";
    const char* cause = nullptr;
    if (!is_of_device(receive.memory)) cause = enter(receive_, receive.whole());
    if (cause == nullptr && !is_of_device(receive.memory)) {
        const ucs_status_t status = receive_.pack_key(key_);
        if (status != UCS_OK) cause = ucs_status_string(status);
    }
    // UCX registers by itself what it sends. Memory that it cannot register (read-only memory, say)
    // would then be an error. Over TCP it registers nothing.
    const bool is_apart = !contains(receive, send) && !is_of_device(send.memory);
    if (cause == nullptr && is_apart && !is_tcp(lane_.worker->choice()))
        cause = enter(send_, send.whole());
    return cause;
}

// Other memory may be kept from children for a reason. Of the program's own memory the kind does not tell that a GPU's
// runtime has pinned it.
static bool is_pageable(const Region& region)
{
    Allocation found;
    return region.memory.kind == MemoryKind::host &&
           gpu::inspect(region.base, found) == Status::ok && found.kind == MemoryKind::host;
}

const char* CallBuffers::enter(UcxMemory& memory, const Region& region)
{
    const QuietUcx quiet;
    const ucs_status_t status =
        memory.map(lane_.worker->context(), region.base, region.length, UCS_MEMORY_TYPE_HOST);
    if (status != UCS_OK) return ucs_status_string(status);
    if (!is_tcp(lane_.worker->choice()) && is_pageable(region))
        give_to_children(region.base, region.length);
    return nullptr;
}

Status CallBuffers::announce()
{
    const Binding& binding = lane_.binding;
    const Region& into = binding.rail_target();
    ucs_status_t status = UCS_OK;
    if (binding.has_bounce()) {
        const QuietUcx quiet;
        status =
            receive_.map(lane_.worker->context(), into.base, into.length, UCS_MEMORY_TYPE_HOST);
        if (status == UCS_OK) status = receive_.pack_key(key_);
    }
    device_.begin(binding);
    if (status == UCS_OK && key_.size() > Announcement::max_key) status = UCS_ERR_EXCEEDS_LIMIT;
    if (status != UCS_OK) {
        log(HIER_LOG_ERROR, "UCX cannot register the receive buffer (%zu bytes): %s", into.length,
            ucs_status_string(status));
        return Status::transport_error;
    }
    if (!is_by_peer())
        renew(to_all_, into.base);
    else if (by_peer_.empty())
        by_peer_.resize(lane_.peers.size());
    return Status::ok;
}

bool CallBuffers::is_by_peer() const
{
    return lane_.binding.has_bounce() || !lane_.binding.displacements.empty();
}

// Without a bounce buffer a peer puts its own block only, where blocks are displaced. So it is told
// where that begins.
const Announcement& CallBuffers::announcement(std::size_t peer)
{
    if (!is_by_peer()) return to_all_.announcement;
    const Binding& binding = lane_.binding;
    if (binding.has_bounce()) {
        renew(by_peer_[peer], binding.bounce.base + binding.place_of(peer));
        return by_peer_[peer].announcement;
    }
    const auto rank = static_cast<std::size_t>(binding.rail_ranks[peer]);
    renew(by_peer_[peer], binding.receive.base + binding.displacements[rank],
          binding.homes.begin_of(rank));
    return by_peer_[peer].announcement;
}

// A new version, unless peers know this one.
void CallBuffers::renew(Told& told, const std::byte* to, std::size_t home)
{
    const Binding& binding = lane_.binding;
    Announcement& a = told.announcement;
    const auto address = reinterpret_cast<std::uint64_t>(to);
    const std::uint64_t is_bounce = binding.has_bounce() ? 1 : 0;
    const std::uint64_t id = is_bounce == 1 ? 0 : binding.receive.memory.id;
    const bool is_known = a.version > 0 && a.address == address && a.home == home &&
                          a.shape == binding.shape() && a.is_bounce == is_bounce && told.id == id &&
                          a.key_bytes == key_.size() &&
                          std::memcmp(a.key.data(), key_.data(), key_.size()) == 0;
    Statistics::instance().add(is_known ? HIER_STATISTIC_KEY_HITS : HIER_STATISTIC_KEY_MISSES);
    if (is_known) return;
    a.address = address;
    a.home = home;
    a.shape = binding.shape();
    a.is_bounce = is_bounce;
    a.key_bytes = key_.size();
    std::memcpy(a.key.data(), key_.data(), key_.size());
    a.version = ++last_version_;
    told.id = id;
}

}  // namespace hier
