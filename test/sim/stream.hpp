// SPDX-License-Identifier: BSD-3-Clause
// Streams. Each stream is a thread that does operations in order, some time after it was given
// them.
#pragma once

#include <hip/hip_runtime_api.h>

#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace hip_sim {

using Random = std::minstd_rand;

// The state of an operation.
struct Mark {
    bool done = false;
    bool failed = false;  // the operation, or one that it had to follow
};
using MarkRef = std::shared_ptr<Mark>;

struct Operation {
    std::function<bool(Random&)> work;  // false: the operation failed; empty: this is only a mark
    std::vector<MarkRef> after;
    bool is_cleanup = false;  // done even if the stream has failed
};

hipError_t create_stream(hipStream_t* stream, bool is_blocking);
hipError_t destroy_stream(hipStream_t stream);

// Null stands for the null stream of the current device. False: there is no such stream.
bool is_stream(hipStream_t stream);
int device_of(hipStream_t stream);
bool enqueue(hipStream_t stream, Operation operation, MarkRef& mark);

// The operations that a wait has to wait for. The wait is one for a stream, for a device, or for
// all devices (-1).
std::vector<MarkRef> outstanding(hipStream_t stream);
std::vector<MarkRef> outstanding_on(int device);

hipError_t wait_for(const std::vector<MarkRef>& marks);
hipError_t query(const std::vector<MarkRef>& marks);

// Sleeps for up to HIP_SIM_DELAY_US.
void pause_for_a_while(Random& random);

std::uint64_t live_streams();
std::uint64_t live_events();

}  // namespace hip_sim
