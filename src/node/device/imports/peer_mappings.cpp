// SPDX-License-Identifier: BSD-3-Clause
#include "node/device/imports/peer_mappings.hpp"

#include <algorithm>

#include "base/statistics.hpp"
#include "gpu/runtime.hpp"

namespace hier {
namespace {

bool is_same(const ExportedMemory& a, const ExportedMemory& b)
{
    return a.owner == b.owner && a.base == b.base && a.length == b.length && a.id == b.id &&
           a.handle == b.handle;
}

bool overlap(const ExportedMemory& a, const ExportedMemory& b)
{
    return a.owner == b.owner && a.base < b.base + b.length && b.base < a.base + a.length;
}

}  // namespace

PeerMappings& PeerMappings::instance()
{
    static PeerMappings mappings;
    return mappings;
}

Status PeerMappings::acquire(const ExportedMemory& memory, int device, Mapping*& mapping)
{
    const std::lock_guard lock(mutex_);
    if (const Iterator m = find(memory, device); m != mappings_.end()) {
        mappings_.splice(mappings_.begin(), mappings_, m);
        m->is_freed = false;  // the owner has just offered it
        if (m->base == nullptr) return Status::transport_error;
        Statistics::instance().add(HIER_STATISTIC_MAPPING_HITS);
        m->users++;
        mapping = &*m;
        return Status::ok;
    }
    Attempts& attempts = attempts_on(memory.owner, device);
    if (!is_worth_asking(attempts) || !close_overlapping(memory)) return Status::transport_error;
    close_freed();
    close_oldest();
    std::byte* base = nullptr;
    Statistics::instance().add(HIER_STATISTIC_MAPPING_MISSES);
    const Status status = gpu::runtime()->map(memory.handle, device, base);
    if (status == Status::out_of_memory) return status;  // the next attempt may find memory
    attempts.has_worked = attempts.has_worked || !failed(status);
    attempts.refusals += failed(status);
    mappings_.push_front({memory, device, base, failed(status) ? 0 : 1, false, false});
    if (failed(status)) return status;
    mapping = &mappings_.front();
    return Status::ok;
}

PeerMappings::Iterator PeerMappings::find(const ExportedMemory& memory, int device)
{
    return std::find_if(mappings_.begin(), mappings_.end(), [&](const Mapping& m) {
        return !m.is_stale && m.device == device && is_same(m.memory, memory);
    });
}

bool PeerMappings::has(const ExportedMemory& memory, int device)
{
    const std::lock_guard lock(mutex_);
    return find(memory, device) != mappings_.end();
}

PeerMappings::Attempts& PeerMappings::attempts_on(std::int32_t owner, int device)
{
    const auto known = std::find_if(attempts_.begin(), attempts_.end(), [&](const Attempts& a) {
        return a.owner == owner && a.device == device;
    });
    return known != attempts_.end() ? *known : attempts_.emplace_back(Attempts{owner, device});
}

bool PeerMappings::is_worth_asking(Attempts& attempts)
{
    return attempts.has_worked || attempts.refusals < max_refusals ||
           ++attempts.unasked % asked_again == 0;
}

void PeerMappings::release(Mapping* mapping)
{
    const std::lock_guard lock(mutex_);
    if (--mapping->users > 0 || !mapping->is_stale) return;
    const auto m = std::find_if(mappings_.begin(), mappings_.end(),
                                [&](const Mapping& each) { return &each == mapping; });
    close(m);
}

void PeerMappings::note_freed(std::int32_t owner, std::span<const ExportEntry> freed)
{
    const std::lock_guard lock(mutex_);
    for (Mapping& m : mappings_) {
        const ExportedMemory& memory = m.memory;
        const auto is_it = [&](const ExportEntry& f) {
            return f.base == memory.base && f.length == memory.length && f.id == memory.id;
        };
        if (memory.owner == owner && std::any_of(freed.begin(), freed.end(), is_it))
            m.is_freed = true;
    }
}

PeerMappings::Iterator PeerMappings::close(Iterator mapping)
{
    if (mapping->base != nullptr) gpu::runtime()->unmap(mapping->base, mapping->device);
    return mappings_.erase(mapping);
}

// Mappings of the same allocation for other devices stay.
bool PeerMappings::close_overlapping(const ExportedMemory& memory)
{
    bool all = true;
    for (Iterator m = mappings_.begin(); m != mappings_.end();) {
        const bool is_old = overlap(m->memory, memory) && !is_same(m->memory, memory);
        if (is_old && m->users == 0) {
            m = close(m);
        } else {
            m->is_stale = m->is_stale || is_old;
            all = all && !is_old;
            ++m;
        }
    }
    return all;
}

void PeerMappings::close_oldest()
{
    for (Iterator m = mappings_.end();
         mappings_.size() >= max_mappings && m != mappings_.begin();) {
        --m;
        if (m->users == 0) m = close(m);
    }
}

void PeerMappings::close_freed()
{
    std::uint64_t bytes = 0;
    for (const Mapping& m : mappings_) bytes += m.is_freed ? m.memory.length : 0;
    if (bytes < max_freed) return;
    for (Iterator m = mappings_.begin(); m != mappings_.end();)
        m = m->is_freed && m->users == 0 ? close(m) : std::next(m);
}

void PeerMappings::clear()
{
    const std::lock_guard lock(mutex_);
    for (Iterator m = mappings_.begin(); m != mappings_.end();)
        m = m->users == 0 ? close(m) : std::next(m);
}

std::size_t PeerMappings::size()
{
    const std::lock_guard lock(mutex_);
    return mappings_.size();
}

}  // namespace hier
