// SPDX-License-Identifier: BSD-3-Clause
// Bytes that differ by sender, call and position, and buffers that notice a write beside them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace hier_test {

// splitmix64: neighbouring ranks, calls and positions give unrelated values.
constexpr std::uint64_t mix(std::uint64_t value)
{
    value += 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
}

constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return mix(mix(a) ^ b); }

// A number below the limit. The same seeds give the same number on every rank.
constexpr unsigned pick(std::uint64_t a, std::uint64_t b, unsigned limit)
{
    return static_cast<unsigned>(mix(a, b) % limit);
}

// The bytes that one rank sends in one call.
class Pattern {
public:
    Pattern(int rank, int call)
        : seed_(mix(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(call)))
    {
    }

    void fill(unsigned char* to, std::size_t bytes) const
    {
        for (std::size_t at = 0; at < bytes; at += word) {
            const std::uint64_t value = mix(seed_ + at);
            std::memcpy(to + at, &value, std::min(word, bytes - at));
        }
    }

    std::vector<unsigned char> bytes(std::size_t count) const
    {
        std::vector<unsigned char> all(count);
        fill(all.data(), count);
        return all;
    }

    // The first position that differs, if any.
    std::optional<std::size_t> mismatch(const unsigned char* from, std::size_t bytes) const
    {
        for (std::size_t at = 0; at < bytes; at += word) {
            const std::uint64_t value = mix(seed_ + at);
            const std::size_t length = std::min(word, bytes - at);
            if (std::memcmp(from + at, &value, length) != 0) {
                unsigned char expected[word];
                std::memcpy(expected, &value, word);
                std::size_t inside = 0;
                while (from[at + inside] == expected[inside]) {
                    ++inside;
                }
                return at + inside;
            }
        }
        return std::nullopt;
    }

private:
    static constexpr std::size_t word = sizeof(std::uint64_t);
    std::uint64_t seed_;
};

// Gaps, guards and idle buffers hold this value. A call must not change it.
inline constexpr unsigned char poison = 0xa5;

inline bool all_poison(const unsigned char* from, std::size_t bytes)
{
    return std::all_of(from, from + bytes, [](unsigned char byte) { return byte == poison; });
}

// Bytes between two guard zones, at a chosen misalignment, all filled with poison.
class GuardedBuffer {
public:
    explicit GuardedBuffer(std::size_t bytes, std::size_t misalignment = 0)
        : storage_(guard + misalignment + bytes + guard, poison), before_(guard + misalignment),
          bytes_(bytes)
    {
    }

    unsigned char* data() { return storage_.data() + before_; }
    const unsigned char* data() const { return storage_.data() + before_; }
    std::size_t bytes() const { return bytes_; }
    void clear() { std::fill(data(), data() + bytes_, poison); }

    bool guards_intact() const
    {
        return all_poison(storage_.data(), before_) && all_poison(data() + bytes_, guard);
    }

private:
    static constexpr std::size_t guard = 4096;
    std::vector<unsigned char> storage_;
    std::size_t before_;
    std::size_t bytes_;
};

}  // namespace hier_test
