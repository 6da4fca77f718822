// SPDX-License-Identifier: BSD-3-Clause
// UcxLane's buffers of a call: registered before it, or refused, and then the call needs a bounce
// buffer.
#include "base/log.hpp"
#include "net/ucx/ucx_lane.hpp"

namespace hier {

bool UcxLane::register_buffers(const Binding& binding)
{
    const std::lock_guard lock(worker_->mutex());
    const char* const cause = why_out_of_reach(binding);
    if (cause == nullptr) return true;
    if (direct_) direct_->end();
    return give_up(cause);
}

// What is as small as this UCX copies when it sends it; up to the size from which it takes registering
// for cheaper it does so with more, but that size is its own affair.
bool UcxLane::register_sources(const Binding& binding, bool is_passed_on)
{
    constexpr std::size_t always_copied = 256;
    const std::size_t most = is_passed_on ? binding.receive.length : binding.send.length;
    if (is_tcp(worker_->choice()) || most <= always_copied) return true;
    const std::lock_guard lock(worker_->mutex());
    const char* cause = is_passed_on ? enter(memory_, binding.receive) : nullptr;
    const bool is_entered = is_passed_on && contains(binding.receive, binding.send);
    if (cause == nullptr && !is_entered) cause = enter(source_, binding.send);
    return cause == nullptr || give_up(cause);
}

bool UcxLane::give_up(const char* cause)
{
    memory_.reset();
    source_.reset();
    if (*cause != '\0' && !has_told_)
        log(HIER_LOG_INFO,
            "UCX cannot register a buffer of the host's memory: %s; such ones go through memory "
            "that it can",
            cause);
    has_told_ = has_told_ || *cause != '\0';
    return false;
}

// Null: it can reach all. "": not the device memory, of which all has been said.
const char* UcxLane::why_out_of_reach(const Binding& binding)
{
    const Region &receive = binding.receive, &send = binding.send;
    const bool has_device = is_of_device(receive.memory) || is_of_device(send.memory);
    if (has_device && (!direct_ || !direct_->take(binding, memory_, packed_key_))) return "";
    const char* cause = nullptr;
    if (!is_of_device(receive.memory)) cause = enter(memory_, receive);
    if (cause == nullptr && !is_of_device(receive.memory)) {
        const ucs_status_t status = memory_.pack_key(packed_key_);
        if (status != UCS_OK) cause = ucs_status_string(status);
    }
    // What UCX sends it registers itself, and what it cannot (read-only memory, say) is then an
    // error. Over TCP it registers nothing.
    const bool is_apart = !contains(receive, send) && !is_of_device(send.memory);
    if (cause == nullptr && is_apart && !is_tcp(worker_->choice())) cause = enter(source_, send);
    return cause;
}

const char* UcxLane::enter(UcxMemory& memory, const Region& region)
{
    const QuietUcx quiet;
    const ucs_status_t status =
        memory.map(worker_->context(), region.base, region.length, UCS_MEMORY_TYPE_HOST);
    if (status != UCS_OK) return ucs_status_string(status);
    // (Other memory may be kept from children for a reason.)
    if (!is_tcp(worker_->choice()) && region.memory.kind == MemoryKind::host)
        give_to_children(region.base, region.length);
    return nullptr;
}

}  // namespace hier
