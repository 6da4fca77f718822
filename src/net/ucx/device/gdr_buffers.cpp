// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/device/gdr_buffers.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "memory/vmm_digest.hpp"
#include "net/ucx/lane/rail_board.hpp"

namespace hier {
namespace {

bool is_on_device(const Region& region) { return region.memory.kind == MemoryKind::device; }

// While a device has its pages, or beside device memory: what a NIC has registered must not move.
bool is_managed(const Region& region) { return region.memory.kind == MemoryKind::managed; }

}  // namespace

ucs_memory_type_t ucx_memory_type(gpu::Platform platform)
{
    return platform == gpu::Platform::cuda ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_ROCM;
}

GdrBuffers::GdrBuffers(std::shared_ptr<UcxWorker> worker, std::vector<std::byte> board_key,
                       std::size_t peers, const gpu::Runtime& runtime, int log_level)
    : worker_(std::move(worker)), board_key_(std::move(board_key)), runtime_(runtime),
      type_(ucx_memory_type(runtime.platform())), log_level_(log_level), flush_(peers)
{
}

bool GdrBuffers::take(const Binding& binding, UcxMemory& receive, std::vector<std::byte>& key)
{
    const bool sends_other_memory =
        is_on_device(binding.send) && !contains(binding.receive, binding.send);
    if (is_hopeless_ || is_managed(binding.receive) || is_managed(binding.send)) return false;
    if (sends_other_memory && !enter(binding.send.whole(), send_, send_key_)) return false;
    if (!is_on_device(binding.receive)) return true;
    if (!enter(binding.receive.whole(), receive, key)) return false;
    try {
        prepare_flush(binding.receive.memory.device);
        return true;
    } catch (const SetupError& e) {
        return refuse(binding.receive, e.what());
    }
}

bool GdrBuffers::enter(const Region& region, UcxMemory& memory, std::vector<std::byte>& key)
{
    const Region known = as_one(region);
    if (keys_.is_refused(known.memory) || !may_try()) return false;
    const char* fault = fault_of(known, memory, key);
    if (fault == nullptr) return true;
    memory.reset();
    return refuse(known, fault);
}

// Where the kernel registers no device memory at all, each attempt costs time: then hier tries rarely.
bool GdrBuffers::may_try()
{
    constexpr unsigned attempts = 4, every = 64;
    return has_registered_ || refusals_ < attempts || ++skipped_ % every == 0;
}

// An application may map allocations one behind the other, and free any of them.
Region GdrBuffers::as_one(Region region)
{
    Allocation& memory = region.memory;
    if (!runtime_.vmm().find_segments(region.base, region.length, memory.device, segments_))
        return region;
    VmmDigest digest;
    for (const gpu::VmmSegment& segment : segments_)
        digest.add(reinterpret_cast<std::uint64_t>(segment.base), segment.length, segment.id);
    const gpu::VmmSegment &first = segments_.front(), &last = segments_.back();
    memory.base = first.base;
    memory.length = static_cast<std::size_t>(last.base + last.length - first.base);
    if (segments_.size() > 1) memory.id = digest.value();
    return region;
}

ucs_status_t GdrBuffers::map(const Region& region, UcxMemory& memory,
                             std::vector<std::byte>& key) const
{
    const QuietUcx quiet;
    const ucs_status_t status = memory.map(worker_->context(), region.base, region.length, type_);
    return status == UCS_OK ? memory.pack_key(key) : status;
}

const char* GdrBuffers::fault_of(const Region& region, UcxMemory& memory,
                                 std::vector<std::byte>& key)
{
    if (region.memory.id == 0) return "the runtime does not tell one allocation from the next";
    if (!contains({region.memory.base, region.memory.length, {}}, region))
        return "it lies in more than one allocation";
    const ucs_status_t status = map(region, memory, key);
    if (status != UCS_OK) {
        refusals_++;
        return ucs_status_string(status);
    }
    has_registered_ = true;
    if (key.size() > Announcement::max_key) return "its key is too long";
    // Over TCP, UCX copies what it sends and what arrives: nothing is registered for good.
    if (!is_rdma(worker_->choice())) return nullptr;
    is_hopeless_ = !is_registered_as(board_key_, key);
    if (is_hopeless_) return "the network device registers no such memory";
    return keys_.take(region.memory, key) ? nullptr : "UCX gives the key of memory that was freed";
}

bool GdrBuffers::refuse(const Region& region, const char* cause)
{
    keys_.refuse(region.memory);
    log(log_level_, "UCX cannot take %zu bytes of device memory: %s; through pinned memory",
        region.length, cause);
    return false;
}

void GdrBuffers::prepare_flush(int device)
{
    if (flush_device_ == device) return;
    const gpu::RdmaFlush kind = runtime_.rdma_flush(device);
    if (kind == gpu::RdmaFlush::by_read) probe_ = &worker_->probe(runtime_, device, type_);
    flush_kind_ = kind;
    flush_device_ = device;
}

}  // namespace hier
