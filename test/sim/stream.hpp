// SPDX-License-Identifier: BSD-3-Clause
// Streams: each is a thread that does operations in order, some time after they were given to it.
#pragma once

#include <hip/hip_runtime_api.h>

#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace hip_sim {

using Random = std::minstd_rand;

// What becomes of an operation.
struct Mark {
    bool done = false;
    bool failed = false;  // it, or something that it came after
};
using MarkRef = std::shared_ptr<Mark>;

struct Operation {
    std::function<bool(Random&)> work;  // false: it failed. Without one, this is a mark only.
    std::vector<MarkRef> after;
    bool is_cleanup = false;  // done on a failed stream, too
};

hipError_t create_stream(hipStream_t* stream, bool is_blocking);
hipError_t destroy_stream(hipStream_t stream);

// Null stands for the null stream of the current device. False: there is no such stream.
bool is_stream(hipStream_t stream);
int device_of(hipStream_t stream);
bool enqueue(hipStream_t stream, Operation operation, MarkRef& mark);

// What a wait for the stream waits for, all streams of a device, or (-1) all.
std::vector<MarkRef> outstanding(hipStream_t stream);
std::vector<MarkRef> outstanding_on(int device);

hipError_t wait_for(const std::vector<MarkRef>& marks);
hipError_t query(const std::vector<MarkRef>& marks);

// Up to HIP_SIM_DELAY_US.
void pause_for_a_while(Random& random);

std::uint64_t live_streams();
std::uint64_t live_events();

}  // namespace hip_sim
