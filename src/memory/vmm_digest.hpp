// SPDX-License-Identifier: BSD-3-Clause
// A digest of the VMM segments that some bytes lie in. The digest changes when a segment is
// replaced.
#pragma once

#include <cstdint>

namespace hier {

class VmmDigest {
public:
    void add(std::uint64_t base, std::uint64_t length, std::uint64_t id)
    {
        for (const std::uint64_t word : {base, length, id})
            value_ = (value_ ^ word) * 0x100000001b3u;
    }
    std::uint64_t value() const { return value_; }

private:
    std::uint64_t value_ = 0xcbf29ce484222325u;  // FNV-1a, word by word
};

}  // namespace hier
