// SPDX-License-Identifier: BSD-3-Clause
// What SdmaTransport gives to the device and gets back from it: copies gathered, started together,
// and reported.
#include <algorithm>

#include "gpu/runtime.hpp"
#include "node/device/sdma_transport.hpp"

namespace hier {

Status SdmaTransport::start_alone(const Item& item)
{
    Batch batch = spare_batch();
    batch.items.push_back(item);
    batches_.reserve(batches_.size() + 1);
    const Status status = engines_->start({&item.copy, 1}, {}, batch.ticket);
    has_hung_ = has_hung_ || status == Status::timed_out;
    if (failed(status)) return status;
    batches_.push_back(std::move(batch));
    return Status::in_progress;
}

SdmaTransport::Batch SdmaTransport::spare_batch()
{
    if (spare_.empty()) return {};
    Batch batch = std::move(spare_.back());
    spare_.pop_back();
    return batch;
}

void SdmaTransport::gather(const Item& item)
{
    if (gathered_.items.empty()) held_since_ = std::chrono::steady_clock::now();
    gathered_.items.push_back(item);
}

bool SdmaTransport::should_hold()
{
    if (unknown_peers_ == 0) return false;
    // Two ranks that push into one get half the rate each: an eighth of the time of all pushes, at
    // some 400 GB/s, is worth waiting for.
    constexpr std::size_t bytes_per_us = 400'000 / 8;
    std::size_t bytes = 0;
    for (const Item& item : gathered_.items) bytes += item.copy.bytes;
    const std::chrono::microseconds patience(20 + bytes / bytes_per_us);
    return std::chrono::steady_clock::now() - held_since_ < patience;
}

std::atomic<std::uint64_t>& SdmaTransport::signal_to(int peer) const
{
    return segment().flag(peer, segment().rank()).by_device;
}

bool SdmaTransport::register_signals()
{
    const SharedMemory& memory = segment().memory();
    return signals_.ensure(device_, memory.data(), memory.size());
}

void SdmaTransport::submit(Completions& completions)
{
    if (!gathered_.items.empty() && !should_hold()) start(completions);
}

void SdmaTransport::start(Completions& completions)
{
    auto& items = gathered_.items;
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.op < b.op; });
    copies_.clear();
    words_.clear();
    bool has_peers = false;
    for (const Item& item : items) {
        copies_.push_back(item.copy);
        completions.started(item.op);
        has_peers = has_peers || item.peer >= 0;
    }
    gathered_.is_told = has_peers && engines_->stores_words() && register_signals();
    for (const Item& item : items) {
        if (!gathered_.is_told || item.peer < 0) continue;
        const std::uint64_t signal = Signal::encode(
            binding().sequence, ++peers_[static_cast<std::size_t>(item.peer)].delivered);
        const auto at = &signal_to(item.peer);
        const auto known = std::find_if(words_.begin(), words_.end(),
                                        [&](const gpu::Word& w) { return w.at == at; });
        if (known == words_.end()) {
            words_.push_back({at, signal, item.copy.lane});
        } else {
            known->value = signal;
        }
    }
    batches_.reserve(batches_.size() + 1);  // what has been started is not to be lost
    const Status status = engines_->start(copies_, words_, gathered_.ticket);
    if (failed(status)) return give_up(status);
    batches_.push_back(std::move(gathered_));
    gathered_ = spare_batch();
}

// progress() tells.
void SdmaTransport::give_up(Status status)
{
    failure_ = status;
    has_hung_ = has_hung_ || status == Status::timed_out;
    gathered_.items.clear();
}

// Batches end in any order. What is signalled is how many puts have arrived, not which.
void SdmaTransport::report(Completions& completions)
{
    for (std::size_t i = 0; i < batches_.size();) {
        const Status status = engines_->reached(batches_[i].ticket);
        if (status == Status::in_progress) {
            i++;
            continue;
        }
        has_hung_ = has_hung_ || status == Status::timed_out;
        Batch batch = std::move(batches_[i]);
        batches_.erase(batches_.begin() + static_cast<std::ptrdiff_t>(i));
        for (const Item& item : batch.items) {
            if (item.peer >= 0 && !batch.is_told && status == Status::ok) {
                const std::uint32_t count = ++peers_[static_cast<std::size_t>(item.peer)].delivered;
                signal_to(item.peer).store(Signal::encode(binding().sequence, count),
                                           std::memory_order_release);
            }
            completions.complete(item.op, status);
        }
        batch.items.clear();
        spare_.push_back(std::move(batch));
    }
}

}  // namespace hier
