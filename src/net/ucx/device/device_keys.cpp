// SPDX-License-Identifier: BSD-3-Clause
#include "net/ucx/device/device_keys.hpp"

#include <algorithm>
#include <cstring>

namespace hier {
namespace {

std::uint64_t address(const Allocation& memory)
{
    return reinterpret_cast<std::uint64_t>(memory.base);
}

// FNV-1a. Two keys of one hash only cost a detour through pinned memory.
std::uint64_t hash(std::span<const std::byte> key)
{
    std::uint64_t value = 0xcbf29ce484222325u;
    for (const std::byte b : key) value = (value ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
    return value == 0 ? 1 : value;
}

std::uint64_t domains(std::span<const std::byte> key)
{
    std::uint64_t map = 0;
    if (key.size() >= sizeof map) std::memcpy(&map, key.data(), sizeof map);
    return map;
}

}  // namespace

bool is_registered_as(std::span<const std::byte> host, std::span<const std::byte> key)
{
    return (domains(host) & ~domains(key)) == 0;
}

bool DeviceKeys::take(const Allocation& memory, std::span<const std::byte> key)
{
    const std::uint64_t base = address(memory), end = base + memory.length, value = hash(key);
    bool is_there = false;
    for (const Entry& e : entries_) {
        if (e.key != value || e.base >= end || base >= e.base + e.length) continue;
        if (e.id != memory.id) return false;
        is_there = true;
    }
    if (!is_there) add(memory, value);
    return true;
}

void DeviceKeys::refuse(const Allocation& memory) { add(memory, 0); }

bool DeviceKeys::is_refused(const Allocation& memory) const
{
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) {
        return e.key == 0 && e.base == address(memory) && e.id == memory.id;
    });
}

void DeviceKeys::add(const Allocation& memory, std::uint64_t key)
{
    const Entry entry{address(memory), memory.length, memory.id, key};
    if (entries_.size() < max_kept) {
        entries_.reserve(max_kept);
        entries_.push_back(entry);
        return;
    }
    entries_[oldest_] = entry;
    oldest_ = (oldest_ + 1) % max_kept;
}

}  // namespace hier
