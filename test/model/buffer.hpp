// SPDX-License-Identifier: BSD-3-Clause
// A receive or bounce buffer that knows of every byte which byte of the result it is, and whether
// it is there. A byte of the result is named by its home, its place in the receive buffers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hier/plan.hpp"

namespace hier::model {

class Buffer {
public:
    // A receive buffer. Bytes that no shard covers count as there. Nobody may write them, and
    // nobody waits for them.
    void clear(std::span<const Extent> shards)
    {
        std::size_t end = 0;
        for (const Extent s : shards) end = s.offset + s.length > end ? s.offset + s.length : end;
        bytes_.assign(end, {0, State::known});
        for (std::size_t i = 0; i < end; i++) bytes_[i].home = i;
        for (const Extent s : shards) set(s.offset, s.length, State::absent);
    }
    // A bounce buffer.
    void clear(std::size_t bytes) { bytes_.assign(bytes, {0, State::absent}); }

    bool covers(std::size_t at, std::size_t length) const
    {
        return at <= bytes_.size() && length <= bytes_.size() - at;
    }
    // The bytes `home` land from `at` on. False: a byte had been written before.
    bool write(std::size_t at, Extent home)
    {
        for (std::size_t i = 0; i < home.length; i++) {
            if (bytes_[at + i].state != State::absent) return false;
            bytes_[at + i] = {home.offset + i, State::landed};
        }
        return true;
    }

    // The owner has been told that these bytes are there.
    void confirm(std::size_t at, std::size_t length) { set(at, length, State::known); }

    bool has_landed(std::size_t at, std::size_t length) const
    {
        return covers(at, length) &&
               std::all_of(bytes_.begin() + offset(at), bytes_.begin() + offset(at + length),
                           [](const Byte& b) { return b.state != State::absent; });
    }
    // Bytes whose signal has not landed are not held, even if they have landed themselves.
    bool holds(std::size_t at, Extent home) const
    {
        if (!covers(at, home.length)) return false;
        for (std::size_t i = 0; i < home.length; i++) {
            if (!is(bytes_[at + i], home.offset + i)) return false;
        }
        return true;
    }
    // The same, wherever they are.
    bool holds(Extent home) const
    {
        for (std::size_t i = 0; i < home.length; i++) {
            if (std::none_of(bytes_.begin(), bytes_.end(),
                             [&](const Byte& b) { return is(b, home.offset + i); }))
                return false;
        }
        return true;
    }
    bool complete() const { return holds(0, {0, bytes_.size()}); }

private:
    enum class State : std::uint8_t { absent, landed, known };
    struct Byte {
        std::size_t home;
        State state;
    };

    static std::ptrdiff_t offset(std::size_t i) { return static_cast<std::ptrdiff_t>(i); }
    static bool is(const Byte& byte, std::size_t home)
    {
        return byte.state == State::known && byte.home == home;
    }
    void set(std::size_t at, std::size_t length, State state)
    {
        for (std::size_t i = at; i < at + length; i++) bytes_[i].state = state;
    }

    std::vector<Byte> bytes_;
};

}  // namespace hier::model
