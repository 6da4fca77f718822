// SPDX-License-Identifier: BSD-3-Clause
// A word of device memory that the rank's own NIC writes and reads back. On the way there and back the
// word pushes everything ahead that the NIC has written to this device before.
//
// A read of its own should do, by PCIe's rules; RCCL found on AMD's GPUs that it does not, and
// writes first. A word that has come back shows that both have been done, in this order.
//
// One for each device that a worker's rails put to: allocating and freeing device memory waits for
// all that runs there, so it is done in set-up and when the worker ends.
#pragma once

#include <cstdint>

#include "hier/gpu.hpp"
#include "net/ucx/ucx_memory.hpp"

namespace hier {

class UcxWorker;

class FlushProbe {
public:
    // Under the worker's mutex, as the rest. Throws SetupError.
    FlushProbe(UcxWorker& worker, const gpu::Runtime& runtime, int device, ucs_memory_type_t type);
    FlushProbe(const FlushProbe&) = delete;
    FlushProbe& operator=(const FlushProbe&) = delete;
    ~FlushProbe();

    // The word to write at at() next: one that has not been there.
    std::uint64_t next_word() { return ++last_; }
    // Has this word been written when that one is read? Another rail's may have come after it.
    bool is_done(std::uint64_t word, std::uint64_t read) const
    {
        return read >= word && read <= last_;
    }
    std::uint64_t at() const { return reinterpret_cast<std::uint64_t>(word_); }
    const UcxRemoteKey& key() const { return key_; }
    ucp_ep_h endpoint() const { return endpoint_; }

private:
    const gpu::Runtime& runtime_;
    int device_;
    std::byte* word_;
    UcxMemory memory_;
    UcxRemoteKey key_;
    ucp_ep_h endpoint_ = nullptr;  // to ourselves; the worker's
    std::uint64_t last_ = 0;
};

}  // namespace hier
