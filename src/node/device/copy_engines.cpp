// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/copy_engines.hpp"

#include <algorithm>

#include "base/statistics.hpp"
#include "gpu/runtime.hpp"

namespace hier {

CopyEngines::CopyEngines(NodeContext& context, const PeerBuffers* buffers, FanOutUse fan_out)
    : context_(context), buffers_(buffers), fan_out_(fan_out),
      signals_(context, buffers != nullptr ? context.size() : 0)
{
}

Status CopyEngines::begin()
{
    const Binding& binding = context_.binding;
    signals_.begin();
    unknown_peers_ = buffers_ != nullptr ? context_.size() - 1 : 0;
    failure_ = Status::ok;
    ran_kernel_ = false;
    is_settling_ = false;
    context_.device = is_of_device(binding.receive.memory) ? binding.receive.memory.device
                      : is_of_device(binding.send.memory)  ? binding.send.memory.device
                                                           : gpu::used_device();
    context_.queue = context_.device >= 0 ? gpu::queue(context_.device) : nullptr;
    if (context_.device >= 0 && context_.queue == nullptr) failure_ = Status::transport_error;
    return failure_;
}

Status CopyEngines::put(const Transfer& transfer)
{
    const int size = context_.size();
    const int lane = (transfer.peer - context_.rank() + size) % size;
    std::byte* const to = buffers_->receive(transfer.peer) + transfer.slice.target;
    gather({transfer.op,
            transfer.peer,
            {to, context_.source(transfer), transfer.slice.length, lane},
            is_here(transfer.from)});
    return Status::in_progress;
}

// Is this buffer in the memory of the queue's device?
bool CopyEngines::is_here(Place place) const
{
    const Allocation& memory = context_.binding.region(place).memory;
    return memory.kind == MemoryKind::device && memory.device == context_.device;
}

Status CopyEngines::copy(const Transfer& transfer)
{
    const int lane = transfer.to == Place::bounce     ? gpu::Copy::to_host
                     : transfer.from == Place::bounce ? gpu::Copy::from_host
                                                      : gpu::Copy::inside;
    Item item{transfer.op,
              -1,
              {context_.binding.at(transfer.to, transfer.slice.target), context_.source(transfer),
               transfer.slice.length, lane}};
    // The network waits for copies to and from the bounce buffer, so they start at once.
    if (lane != gpu::Copy::inside) return start_alone(item);
    item.is_in_reach = item.copy.recurs = is_here(transfer.from) && is_here(transfer.to);
    gather(item);
    return Status::in_progress;
}

Status CopyEngines::start_alone(const Item& item)
{
    Batch batch = spare_batch();
    batch.items.push_back(item);
    batches_.reserve(batches_.size() + 1);
    const Status status = keep_hung(context_.queue->start({&item.copy, 1}, {}, batch.ticket));
    if (failed(status)) return status;
    batches_.push_back(std::move(batch));
    return Status::in_progress;
}

CopyEngines::Batch CopyEngines::spare_batch()
{
    if (spare_.empty()) return {};
    Batch batch = std::move(spare_.back());
    spare_.pop_back();
    batch.is_kernel = false;
    batch.watch.ignore();
    return batch;
}

void CopyEngines::gather(const Item& item)
{
    if (gathered_.items.empty()) held_since_ = std::chrono::steady_clock::now();
    gathered_.items.push_back(item);
}

bool CopyEngines::should_hold() const
{
    if (unknown_peers_ == 0) return false;
    // Two ranks that push into the same third one get half the rate each. To avoid that, an eighth
    // of the time of all pushes is a fair wait. The rate is taken as 400 GB/s.
    constexpr std::size_t bytes_per_us = 400'000 / 8;
    std::size_t bytes = 0;
    for (const Item& item : gathered_.items) bytes += item.copy.bytes;
    const std::chrono::microseconds patience(20 + bytes / bytes_per_us);
    return std::chrono::steady_clock::now() - held_since_ < patience;
}

void CopyEngines::submit(Completions& completions)
{
    if (!gathered_.items.empty() && !should_hold()) start(completions);
}

// Kernels go first: a launch takes the CPU little time.
void CopyEngines::start(Completions& completions)
{
    auto& items = gathered_.items;
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.op < b.op; });
    if (fan_out_ != FanOutUse::never) take_blocks();
    if (failed(start_kernels(completions)) || items.empty()) return;
    for (const Item& item : items) completions.started(item.op);
    (void)keep_failure(start_copies());
}

// Neighbours in the plan's order are one block, of as many as a kernel always has room for.
std::span<const CopyEngines::Item> CopyEngines::first_block(std::span<const Item> items)
{
    static_assert(gpu::FanOut::max_places <= gpu::FanOut::max_places_in_all);
    const auto most = items.first(std::min<std::size_t>(items.size(), gpu::FanOut::max_places));
    const auto end = std::find_if(most.begin() + 1, most.end(), [&](const Item& item) {
        return !is_same_block(items.front().copy, item.copy);
    });
    return most.first(static_cast<std::size_t>(end - most.begin()));
}

std::span<const gpu::Copy> CopyEngines::copies_of(std::span<const Item> items)
{
    copies_.clear();
    for (const Item& item : items) copies_.push_back(item.copy);
    return copies_;
}

// The blocks that kernels move wait for one. The other items stay where they are.
void CopyEngines::take_blocks()
{
    auto& items = gathered_.items;
    auto left = items.begin();
    for (auto begin = items.begin(); begin != items.end();) {
        const auto block = first_block({begin, items.end()});
        const auto end = begin + static_cast<std::ptrdiff_t>(block.size());
        if (may_fan_out(block) && is_fan_out(copies_of(block), fan_out_) &&
            context_.queue->has_kernels() && should_fan_out(block))
            waiting_.insert(waiting_.end(), begin, end);
        else
            left = std::copy(begin, end, left);
        begin = end;
    }
    items.erase(left, items.end());
}

Status CopyEngines::start_kernels(Completions& completions)
{
    constexpr auto max_on_their_way = 2;
    const auto are_on_their_way = [&] {
        return std::count_if(batches_.begin(), batches_.end(),
                             [](const Batch& batch) { return batch.is_kernel; });
    };
    Status status = Status::ok;
    while (!waiting_.empty() && !failed(status) && are_on_their_way() < max_on_their_way)
        status = keep_failure(start_kernel(completions));
    return status;
}

Status CopyEngines::start_kernel(Completions& completions)
{
    gpu::FanOut arguments{};
    std::size_t taken = 0;
    while (taken < waiting_.size()) {
        const auto block = first_block(std::span<const Item>(waiting_).subspan(taken));
        if (!add_block(copies_of(block), arguments)) break;
        taken += block.size();
    }
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(taken);
    Batch batch = spare_batch();
    batch.items.assign(waiting_.begin(), end);
    batch.is_kernel = true;
    waiting_.erase(waiting_.begin(), end);
    set_words(batch);
    for (const Item& item : batch.items) completions.started(item.op);
    batches_.reserve(batches_.size() + 1);
    const Status status = context_.queue->fan_out(arguments, signals_.words(), batch.ticket);
    if (failed(status)) return status;
    if (!waits_anyway(batch.items))
        batch.watch.begin(context_.device, ComputeUnits::User::fan_out, patience(batch));
    batches_.push_back(std::move(batch));
    Statistics::instance().add(HIER_STATISTIC_FAN_OUTS, arguments.blocks);
    ran_kernel_ = true;
    return Status::ok;
}

// A batch signals to all its peers when its last copy is done. Large puts of one pair go one by one,
// because the peer may pass them on (4 H200, one block round a ring of 1 GiB: 3.5 ms, in batches of
// two 4.0). Puts to several peers stay together: equal blocks of 16 MiB took 152 us, one by one 160.
Status CopyEngines::start_copies()
{
    const std::span<const Item> items = gathered_.items;
    for (std::size_t begin = 0; begin < items.size();) {
        const std::size_t count = goes_alone(items.subspan(begin)) ? 1 : items.size() - begin;
        const Status status = start_batch(items.subspan(begin, count));
        if (failed(status)) return status;
        begin += count;
    }
    gathered_.items.clear();
    return Status::ok;
}

// Is the first one a large put, and are more puts to the same peer behind it, and none to others?
bool CopyEngines::goes_alone(std::span<const Item> items)
{
    constexpr std::size_t large = 8 << 20;
    const Item& first = items.front();
    const auto has_other_peer = [&](const Item& i) { return i.peer >= 0 && i.peer != first.peer; };
    const auto has_peer = [](const Item& i) { return i.peer >= 0; };
    return has_peer(first) && first.copy.bytes >= large &&
           std::none_of(items.begin(), items.end(), has_other_peer) &&
           std::any_of(items.begin() + 1, items.end(), has_peer);
}

Status CopyEngines::start_batch(std::span<const Item> items)
{
    Batch batch = spare_batch();
    batch.items.assign(items.begin(), items.end());
    set_words(batch);
    batches_.reserve(batches_.size() + 1);  // so that no copy that has been started is lost
    const Status status = context_.queue->start(copies_of(items), signals_.words(), batch.ticket);
    if (!failed(status)) batches_.push_back(std::move(batch));
    return status;
}

// The words that the device stores behind the batch. What a device signals to a peer runs in one
// stream, in the order of these calls. So its counts only grow.
void CopyEngines::set_words(Batch& batch)
{
    const auto has_peer = [](const Item& item) { return item.peer >= 0; };
    signals_.clear_words();
    batch.signalled_by_device = std::any_of(batch.items.begin(), batch.items.end(), has_peer) &&
                                signals_.are_stored_by_device();
    for (const Item& item : batch.items) {
        if (batch.signalled_by_device && item.peer >= 0) signals_.add(item.peer, item.copy.lane);
    }
}

// The peers' buffers are mapped for the queue's device.
bool CopyEngines::may_fan_out(std::span<const Item> block) const
{
    const auto has_peer = [](const Item& item) { return item.peer >= 0; };
    constexpr std::size_t max_in_background = 1 << 20;
    const Binding& binding = context_.binding;
    return (fan_out_ == FanOutUse::all_blocks || !binding.in_background ||
            binding.total <= max_in_background) &&
           !binding.by_engines && std::any_of(block.begin(), block.end(), has_peer) &&
           std::all_of(block.begin(), block.end(), [](const Item& i) { return i.is_in_reach; });
}

// A copy inside a device waits for a compute unit in any case. Ranks that share one make such copies alone.
bool CopyEngines::waits_anyway(std::span<const Item> items) const
{
    return fan_out_ == FanOutUse::all_blocks ||
           std::any_of(items.begin(), items.end(), [](const Item& item) { return item.peer < 0; });
}

bool CopyEngines::should_fan_out(std::span<const Item> block) const
{
    return waits_anyway(block) ||
           ComputeUnits::of(context_.device).are_free(ComputeUnits::User::fan_out);
}

// At the rate of a slow link, PCIe 4 among several GPUs.
ComputeUnits::Clock::duration CopyEngines::patience(const Batch& batch)
{
    constexpr std::size_t bytes_per_us = 20'000;
    std::size_t bytes = 0;
    for (const Item& item : batch.items) bytes += item.copy.bytes;
    return std::chrono::microseconds(50 + bytes / bytes_per_us);
}

// progress() reports it.
Status CopyEngines::keep_failure(Status status)
{
    if (!failed(keep_hung(status))) return status;
    raise();
    return failure_ = status;
}

Status CopyEngines::keep_hung(Status status)
{
    has_hung_ = has_hung_ || status == Status::timed_out;
    return status;
}

// Batches end in any order. A signal tells how many puts have arrived, not which.
void CopyEngines::report(Completions& completions)
{
    for (std::size_t i = 0; i < batches_.size();) {
        const Status status = keep_hung(context_.queue->reached(batches_[i].ticket));
        if (status == Status::in_progress) {
            // Copies and kernels stand in one line.
            ComputeUnits::Kernel& watch = batches_[i].watch;
            if (i > 0)
                watch.begin_again();
            else
                watch.look();
            i++;
            continue;
        }
        Batch batch = std::move(batches_[i]);
        batches_.erase(batches_.begin() + static_cast<std::ptrdiff_t>(i));
        if (status == Status::ok) batch.watch.end();
        for (const Item& item : batch.items) {
            if (item.peer >= 0 && !batch.signalled_by_device && status == Status::ok)
                signals_.store(item.peer);
            completions.complete(item.op, status);
        }
        batch.items.clear();
        spare_.push_back(std::move(batch));
    }
}

Status CopyEngines::progress(Completions& completions)
{
    report(completions);
    (void)start_kernels(completions);
    submit(completions);
    return failed(failure_) ? failure_ : Status::ok;
}

bool CopyEngines::idle()
{
    std::erase_if(batches_, [&](const Batch& batch) {
        return keep_hung(context_.queue->reached(batch.ticket)) != Status::in_progress;
    });
    return batches_.empty() && !has_hung_;
}

Status CopyEngines::settle()
{
    if (!is_of_device(context_.binding.receive.memory) || !gpu::runtime()->needs_acquire())
        return Status::ok;
    if (!is_settling_) {
        const Status status = context_.queue->start({}, {}, settled_);
        if (failed(status)) return status;
        is_settling_ = true;
    }
    return context_.queue->reached(settled_);
}

void CopyEngines::end()
{
    raise();
    batches_.clear();
}

}  // namespace hier
