#include "transport/flush_probe.hpp"

#include <unistd.h>

#include <utility>

#include "error.hpp"

namespace hier {

void FlushProbe::prepare(UcxWorker& worker, const gpu::Runtime& runtime, int device,
                         ucs_memory_type_t type)
{
    constexpr std::size_t bytes = 64;
    if (word_ != nullptr && device_ == device) return;
    release();
    runtime_ = &runtime;
    device_ = device;
    word_ = runtime.allocate_device(device, bytes);
    if (word_ == nullptr) throw SetupError("no device memory for a word");
    std::vector<std::byte> packed;
    check(memory_.map(worker.context(), word_, bytes, type), "registering a word");
    check(memory_.pack_key(packed), "packing a word's key");
    endpoint_ = worker.connect(worker.address());
    check(key_.unpack(endpoint_, packed.data()), "unpacking a word's key");
    // None that the memory may have from somebody before.
    last_ = static_cast<std::uint64_t>(getpid()) << 32;
}

void FlushProbe::release()
{
    key_.reset();
    memory_.reset();
    if (word_ != nullptr) runtime_->free_device(device_, std::exchange(word_, nullptr));
}

}  // namespace hier
