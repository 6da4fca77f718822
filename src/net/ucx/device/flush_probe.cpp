// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/device/flush_probe.hpp"

#include <unistd.h>

#include <vector>

#include "base/error.hpp"
#include "net/ucx/ucx_worker.hpp"

namespace hier {

FlushProbe::FlushProbe(UcxWorker& worker, const gpu::Runtime& runtime, int device,
                       ucs_memory_type_t type)
    : runtime_(runtime), device_(device)
{
    constexpr std::size_t bytes = 64;
    word_ = runtime.memory().allocate_device(device, bytes);
    if (word_ == nullptr) throw SetupError("no device memory for a word");
    try {
        std::vector<std::byte> packed;
        ucs_status_t status = UCS_OK;
        {
            const QuietUcx quiet;
            status = memory_.map(worker.context(), word_, bytes, type);
        }
        check(status, "registering a word");
        check(memory_.pack_key(packed), "packing a word's key");
        endpoint_ = worker.connect(worker.address());
        check(key_.unpack(endpoint_, packed), "unpacking a word's key");
    } catch (const SetupError&) {
        memory_.reset();
        runtime_.memory().free_device(device_, word_);
        throw;
    }
    // None that the memory may have from somebody before.
    last_ = static_cast<std::uint64_t>(getpid()) << 32;
}

FlushProbe::~FlushProbe()
{
    key_.reset();
    memory_.reset();
    runtime_.memory().free_device(device_, word_);
}

}  // namespace hier
