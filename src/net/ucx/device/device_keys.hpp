// SPDX-License-Identifier: BSD-3-Clause
// The keys that UCX gave for device memory, by allocation: what shows that a key is an old one's.
//
// UCX keeps registrations of its own and drops them when it sees the memory freed. Where its hooks
// are not told, it hands out the registration of memory that is gone: the key is the same although
// the allocation is another one. Registered anew, memory gets another key.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hier/memory.hpp"

namespace hier {

// Has the network device registered what this key is of? A packed key begins with the memory domains
// that have, a bit each (UCX 1.13 to 1.22); `host` is the key of memory of the host, which it has
// registered. UCX leaves out those that cannot, and would then send through memory of its own, with
// the target's help, and let a signal overtake it.
bool is_registered_as(std::span<const std::byte> host, std::span<const std::byte> key);

class DeviceKeys {
public:
    // False: the key belongs to another allocation, which was there before.
    bool take(const Allocation& memory, std::span<const std::byte> key);
    // Memory that cannot be registered, until it is freed.
    void refuse(const Allocation& memory);
    bool is_refused(const Allocation& memory) const;

    static constexpr std::size_t max_kept =
        64;  // allocations; the oldest are forgotten, and with them what was said of their keys

private:
    struct Entry {
        std::uint64_t base, length;
        std::uint64_t id;
        std::uint64_t key;  // a hash; 0: refused
    };
    void add(const Allocation& memory, std::uint64_t key);

    std::vector<Entry> entries_;
    std::size_t oldest_ = 0;
};

}  // namespace hier
