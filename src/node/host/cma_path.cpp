// SPDX-License-Identifier: BSD-3-Clause
#include "node/host/cma_path.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "node/host/process_memory.hpp"

namespace hier {
Status CmaPath::begin()
{
    std::fill(delivered_.begin(), delivered_.end(), 0);
    return Status::ok;
}

bool CmaPath::fits_at_peer(const Transfer& transfer)
{
    const NodeOffer& offer = context_.offer(transfer.peer);
    if (fits(transfer.slice.target, transfer.slice.length, offer.length)) return true;
    log(HIER_LOG_ERROR, "a put beyond the end of node rank %d's receive buffer (%zu bytes)",
        transfer.peer, static_cast<std::size_t>(offer.length));
    return false;
}

Status CmaPath::put(const Transfer& transfer)
{
    if (!fits_at_peer(transfer)) return Status::mismatch;
    if (transfer.slice.length > max_at_once) {
        long_.push_back({transfer, 0});
        return Status::in_progress;
    }
    const Extent whole{transfer.slice.target, transfer.slice.length};
    const int cause = try_to_write(transfer, whole);
    if (cause != 0) return report(transfer, whole, cause);
    count(transfer.peer);
    return Status::ok;
}

std::optional<Status> CmaPath::put_if_reachable(const Transfer& transfer)
{
    if (!fits_at_peer(transfer)) return Status::mismatch;
    const bool is_long = transfer.slice.length > max_at_once;
    const Extent first{transfer.slice.target, is_long ? 1 : transfer.slice.length};
    const int cause = try_to_write(transfer, first);
    if (cause != 0 && is_refusal(cause, pids_[static_cast<std::size_t>(transfer.peer)]))
        return std::nullopt;
    if (cause != 0) return report(transfer, first, cause);
    if (is_long) return put(transfer);
    count(transfer.peer);
    return Status::ok;
}

std::uint32_t CmaPath::arrived(int peer) const
{
    const auto& signal = context_.segment->signal_by_cpu(context_.rank(), peer);
    return Signal::count(signal.load(std::memory_order_acquire), context_.binding.sequence);
}

// Writes one part of the first long put.
Status CmaPath::progress(Completions& completions)
{
    if (long_.empty()) return Status::ok;
    Long& first = long_.front();
    const Transfer transfer = first.transfer;
    const Slice slice = transfer.slice;
    const std::size_t part = std::min(max_at_once, slice.length - first.done);
    const Extent next{slice.target + first.done, part};
    const int cause = try_to_write(transfer, next);
    const Status status = cause == 0 ? Status::ok : report(transfer, next, cause);
    first.done += part;
    if (!failed(status) && first.done < slice.length) {
        completions.moved_bytes();
        return Status::ok;
    }
    long_.pop_front();
    if (!failed(status)) count(transfer.peer);
    completions.complete(transfer.op, status);
    return Status::ok;
}

int CmaPath::try_to_write(const Transfer& transfer, Extent part)
{
    const auto peer = static_cast<std::size_t>(transfer.peer);
    const std::uint64_t to = context_.offer(transfer.peer).address + part.offset;
    const std::byte* from = context_.source(transfer) + (part.offset - transfer.slice.target);
    return write_memory(pids_[peer], from, to, part.length);
}

Status CmaPath::report(const Transfer& transfer, Extent part, int cause)
{
    log(HIER_LOG_ERROR, "process_vm_writev of %zu bytes to node rank %d (process %d): %s",
        part.length, transfer.peer, pids_[static_cast<std::size_t>(transfer.peer)],
        std::strerror(cause));
    return Status::transport_error;
}

void CmaPath::count(int peer)
{
    const std::uint32_t delivered = ++delivered_[static_cast<std::size_t>(peer)];
    context_.segment->signal_by_cpu(peer, context_.rank())
        .store(Signal::encode(context_.binding.sequence, delivered), std::memory_order_release);
}

bool can_be_written(const Region& region)
{
    std::byte* const ends[] = {region.base, region.base + region.length - 1};
    return std::all_of(std::begin(ends), std::end(ends), [](std::byte* end) {
        std::byte copy = *end;
        const iovec local{&copy, 1}, remote{end, 1};
        return process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == 1;
    });
}

}  // namespace hier
