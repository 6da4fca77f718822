// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/device_publish.hpp"

#include <cstring>

#include "gpu/runtime.hpp"

namespace hier {

DevicePublish::DevicePublish(NodeContext& context, NodePublish& published,
                             std::unique_ptr<KernelExchange> kernels, std::size_t max_by_cpu)
    : context_(context), published_(published), kernels_(std::move(kernels)),
      max_by_cpu_(max_by_cpu)
{
}

Status DevicePublish::begin()
{
    out_.reset();
    in_.reset();
    own_.reset();
    has_landed_ = false;
    waiting_.reset();
    send_window_ = receive_window_ = nullptr;
    landed_ = 0;
    way_ = kernels_ ? KernelExchange::Way::open : KernelExchange::Way::copies;
    return published_.begin();
}

// Copies to memory that the runtime does not know are right too, but slow.
Status DevicePublish::start(std::optional<Started>& started, std::uint32_t op)
{
    (void)context_.segment->register_with(context_.device);
    std::uint64_t ticket = 0;
    const Status status = context_.queue->start(copies_, {}, ticket);
    has_hung_ = has_hung_ || status == Status::timed_out;
    if (failed(status)) return status;
    started = {ticket, op};
    return Status::in_progress;
}

Status DevicePublish::reached(const std::optional<Started>& started)
{
    if (!started) return Status::ok;
    const Status status = context_.queue->reached(started->ticket);
    has_hung_ = has_hung_ || status == Status::timed_out;
    return status;
}

Status DevicePublish::put(const Transfer& transfer)
{
    const bool is_for_cpu = max_by_cpu_ > 0 && transfer.slice.length <= max_by_cpu_;
    if (is_for_cpu) {
        way_ = KernelExchange::Way::copies;
        send_window_ = sent_.window(context_.binding.region(transfer.from));
        receive_window_ = received_.window(context_.binding.receive);
    }
    if (is_for_cpu || !kernels_ || enter_from_host(transfer)) return put_without_kernel(transfer);
    waiting_ = transfer;
    kernels_->enter(transfer);
    return Status::in_progress;
}

// What such a rank says settles the way, and it need not wait for the others.
bool DevicePublish::enter_from_host(const Transfer& transfer)
{
    if (receives_on_device() || is_of_device(context_.binding.region(transfer.from).memory))
        return false;
    way_ = KernelExchange::Way::copies;
    if (kernels_ && !kernels_->has_entered()) kernels_->enter(transfer);
    return true;
}

Status DevicePublish::choose_way(Completions& completions)
{
    if (!waiting_) return Status::in_progress;
    Status status = kernels_->decide(way_);
    if (way_ == KernelExchange::Way::kernel) {
        status = kernels_->launch();
        if (status == Status::in_progress) way_ = KernelExchange::Way::open;
        return status;
    }
    if (failed(status) || way_ != KernelExchange::Way::copies) return status;
    status = put_without_kernel(*waiting_);
    if (status != Status::in_progress) completions.complete(waiting_->op, status);
    return status;
}

Status DevicePublish::put_without_kernel(const Transfer& transfer)
{
    if (!is_of_device(context_.binding.region(transfer.from).memory))
        return published_.put(transfer);
    std::byte* bytes = nullptr;
    const Status status = published_.place(transfer.slice, bytes);
    if (failed(status)) return status;
    if (send_window_ != nullptr) {
        send_window_->load(bytes, context_.source(transfer), transfer.slice.length);
        published_.show();
        return status;
    }
    copies_ = {{.to = bytes,
                .from = context_.source(transfer),
                .bytes = transfer.slice.length,
                .lane = gpu::Copy::to_host,
                .is_alone = true}};
    return start(out_, transfer.op);
}

Status DevicePublish::copy(const Transfer& transfer)
{
    own_ = transfer.op;
    return Status::in_progress;
}

Status DevicePublish::end_put(Completions& completions)
{
    const Status status = reached(out_);
    if (!out_ || status == Status::in_progress) return status;
    const std::uint32_t op = out_->op;
    out_.reset();
    if (!failed(status)) published_.show();
    completions.complete(op, status);
    return status;
}

// A block joins the rows before it if it has the same length and lies the same pitches further on.
void DevicePublish::add_to_rows(const NodePublish::Arrived& block)
{
    std::byte* const to = context_.binding.receive.base + block.offset;
    const auto distance = [](const void* from, const void* at) {
        return static_cast<const std::byte*>(at) - static_cast<const std::byte*>(from);
    };
    if (!copies_.empty() && copies_.back().bytes == block.length) {
        gpu::Copy& rows = copies_.back();
        const auto count = static_cast<std::ptrdiff_t>(rows.rows);
        const auto least = static_cast<std::ptrdiff_t>(block.length);
        const std::ptrdiff_t to_pitch = distance(rows.to, to) / count;
        const std::ptrdiff_t from_pitch = distance(rows.from, block.bytes) / count;
        const bool is_regular = to_pitch * count == distance(rows.to, to) &&
                                from_pitch * count == distance(rows.from, block.bytes) &&
                                to_pitch >= least && from_pitch >= least;
        if (is_regular &&
            (count == 1 || (static_cast<std::size_t>(to_pitch) == rows.to_pitch &&
                            static_cast<std::size_t>(from_pitch) == rows.from_pitch))) {
            rows.rows++;
            rows.to_pitch = static_cast<std::size_t>(to_pitch);
            rows.from_pitch = static_cast<std::size_t>(from_pitch);
            return;
        }
    }
    copies_.push_back({.to = to,
                       .from = block.bytes,
                       .bytes = block.length,
                       .lane = gpu::Copy::from_host,
                       .is_alone = true});
}

// Starts when the blocks of all ranks are there.
Status DevicePublish::copy_in()
{
    copies_.clear();
    for (int rank = 0; rank < context_.size(); rank++) {
        NodePublish::Arrived block{};
        const Status status = published_.first(rank, block);
        if (status != Status::ok) return status;
        add_to_rows(block);
    }
    return start(in_, 0);
}

Status DevicePublish::copy_own_by_cpu()
{
    NodePublish::Arrived block{};
    const Status status = published_.first(context_.rank(), block);
    if (status == Status::ok)
        std::memcpy(context_.binding.receive.base + block.offset, block.bytes, block.length);
    return status;
}

Status DevicePublish::store_block_of(int rank)
{
    NodePublish::Arrived block{};
    Status status = published_.entered(rank);
    if (status == Status::ok) status = published_.first(rank, block);
    if (status == Status::ok)
        receive_window_->store(context_.binding.receive.base + block.offset, block.bytes,
                               block.length);
    return status;
}

// One flush is enough for all blocks, so a block counts as arrived when all have.
Status DevicePublish::land_by_cpu()
{
    if (has_landed_ && !own_) return Status::ok;
    for (; landed_ < context_.size(); landed_++) {
        if (landed_ == context_.rank()) continue;
        const Status status = store_block_of(landed_);
        if (status != Status::ok) return status;
    }
    const Status status = own_ ? store_block_of(context_.rank()) : Status::ok;
    if (status != Status::ok) return status;
    receive_window_->flush(context_.binding.receive.base);
    has_landed_ = true;
    return status;
}

std::uint32_t DevicePublish::arrived(int peer) const
{
    if (receives_on_device() || way_ == KernelExchange::Way::kernel) return has_landed_ ? 1 : 0;
    return published_.arrived(peer);
}

Status DevicePublish::progress(Completions& completions)
{
    if (context_.raised && way_ != KernelExchange::Way::copies) return Status::ok;
    if (way_ == KernelExchange::Way::open) {
        const Status status = choose_way(completions);
        if (failed(status)) return status;
    }
    switch (way_) {
    case KernelExchange::Way::open:
    case KernelExchange::Way::pushes:
        return Status::ok;
    case KernelExchange::Way::kernel:
        return progress_kernel(completions);
    case KernelExchange::Way::copies:
        break;
    }
    return progress_copies(completions);
}

// The kernel copies the own block too.
Status DevicePublish::progress_kernel(Completions& completions)
{
    if (has_landed_) return Status::ok;
    const Status status = kernels_->reached();
    if (status != Status::ok) return failed(status) ? status : Status::ok;
    has_landed_ = true;
    completions.complete(waiting_->op, status);
    if (own_) completions.complete(*own_, status);
    own_.reset();
    return status;
}

Status DevicePublish::progress_copies(Completions& completions)
{
    Status status = end_put(completions);
    if (failed(status) || context_.raised) return failed(status) ? status : Status::ok;
    if (!receives_on_device()) {
        status = published_.progress(completions);
        if (own_ && !failed(status)) status = copy_own_by_cpu();
    } else if (receive_window_ != nullptr) {
        status = land_by_cpu();
    } else if (!has_landed_) {
        status = in_ ? reached(in_) : copy_in();
        has_landed_ = status == Status::ok;
    }
    if (own_ && status == Status::ok) {
        completions.complete(*own_, status);
        own_.reset();
    }
    return failed(status) ? status : Status::ok;
}

void DevicePublish::raise()
{
    waiting_.reset();
    if (kernels_) kernels_->stop();
}

bool DevicePublish::idle()
{
    if (kernels_ && kernels_->reached() == Status::in_progress) return false;
    return reached(out_) != Status::in_progress && reached(in_) != Status::in_progress &&
           !has_hung();
}

}  // namespace hier
