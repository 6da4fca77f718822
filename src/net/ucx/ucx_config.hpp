// SPDX-License-Identifier: BSD-3-Clause
// How UCX is set up for a choice of network, and which order UCX then keeps.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <optional>

#include "net/devices/network_choice.hpp"

namespace hier {

unsigned ucx_version();  // 100 * major + minor
// Older ones copy with the CPU whatever they do not send by zero-copy, and the CPU cannot read device
// memory.
inline constexpr unsigned first_for_devices = 116;
// Does the weak fence of that version keep a put over RDMA behind those before?
bool orders_by_weak_fence(unsigned version);

// The means by which a signal stays behind its data.
enum class SignalOrder {
    by_lane,   // one lane that delivers in order: nothing to do
    by_fence,  // RDMA: a fence between the two
    by_flush,  // several lanes, or unknown ones: the data is flushed first
};

void configure(ucp_config_t* config, const NetworkChoice& choice);
SignalOrder signal_order_for(const NetworkChoice& choice);
// Chunks. A fence is spent on the first put that UCX posts after it, and with no room among its requests
// on their way (UCX_RC_TX_QUEUE_LEN: 256, UCX_DC_TX_QUEUE_LEN: 128, two for each chunk) it posts data later than
// that.
int max_in_flight(const NetworkChoice& choice);

// UCX locks so much for its own buffers of an RDMA device: 56 MB were seen (1.13, rc_verbs).
inline constexpr std::size_t locked_by_ucx = 64 << 20;
// Bytes of memory that this process may lock. Registered memory is locked. None: there is no limit.
std::optional<std::size_t> max_lockable();
// Bytes for the call that runs. Beside UCX's own buffers, half of the limit is for UCX's cache, and half for
// the call.
std::size_t max_registered(const NetworkChoice& choice);

// UCX ends the process where it gets no descriptor or thread in the middle of its work. So hier tries to get
// them first. Both throw SetupError.
void require_descriptors(std::size_t count);
void require_thread();

}  // namespace hier
