// A word of device memory that the rank's own NIC writes and reads back: on the way there and back
// it pushes ahead of it what the NIC has written to this device before.
//
// A read of its own should do, by PCIe's rules; RCCL found on AMD's GPUs that it does not, and
// writes first. A word that has come back shows that both have been done, in this order.
#pragma once

#include <cstdint>

#include "hier/gpu.hpp"
#include "transport/ucx_memory.hpp"
#include "transport/ucx_worker.hpp"

namespace hier {

class FlushProbe {
public:
    FlushProbe() = default;
    FlushProbe(const FlushProbe&) = delete;
    FlushProbe& operator=(const FlushProbe&) = delete;
    ~FlushProbe() { release(); }

    // For this device; nothing to do where it is so already. Under the worker's mutex. Throws
    // SetupError.
    void prepare(UcxWorker& worker, const gpu::Runtime& runtime, int device,
                 ucs_memory_type_t type);
    void release();

    // What to write next, at at(): a word that has not been there.
    std::uint64_t next_word() { return ++last_; }
    std::uint64_t at() const { return reinterpret_cast<std::uint64_t>(word_); }
    const UcxRemoteKey& key() const { return key_; }
    ucp_ep_h endpoint() const { return endpoint_; }

private:
    const gpu::Runtime* runtime_ = nullptr;
    int device_ = -1;
    std::byte* word_ = nullptr;
    UcxMemory memory_;
    UcxRemoteKey key_;
    ucp_ep_h endpoint_ = nullptr;  // to ourselves; the worker's
    std::uint64_t last_ = 0;
};

}  // namespace hier
