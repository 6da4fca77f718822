// SPDX-License-Identifier: BSD-3-Clause
// A receive or bounce buffer that knows of every byte only whether the byte is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hier/plan.hpp"

namespace hier::model {

class Buffer {
public:
    // Bytes that no shard covers count as there. Nobody may write them, and nobody waits for them.
    void clear(std::span<const Extent> shards)
    {
        std::size_t end = 0;
        for (const Extent s : shards) end = s.offset + s.length > end ? s.offset + s.length : end;
        bytes_.assign(end, State::known);
        for (const Extent s : shards) set(s, State::absent);
    }

    // False: a byte had been written before.
    bool write(Extent s)
    {
        for (std::size_t i = s.offset; i < s.offset + s.length; i++) {
            if (bytes_[i] != State::absent) return false;
            bytes_[i] = State::landed;
        }
        return true;
    }

    // The owner has been told that these bytes are there.
    void confirm(Extent s) { set(s, State::known); }

    bool has_landed(Extent s) const
    {
        for (std::size_t i = s.offset; i < s.offset + s.length; i++) {
            if (bytes_[i] == State::absent) return false;
        }
        return true;
    }

    // Bytes whose signal has not landed are not held, even if they have landed themselves.
    bool holds(Extent s) const
    {
        for (std::size_t i = s.offset; i < s.offset + s.length; i++) {
            if (bytes_[i] != State::known) return false;
        }
        return true;
    }
    bool complete() const { return holds({0, bytes_.size()}); }

private:
    enum class State : std::uint8_t { absent, landed, known };

    void set(Extent s, State state)
    {
        for (std::size_t i = s.offset; i < s.offset + s.length; i++) bytes_[i] = state;
    }

    std::vector<State> bytes_;
};

}  // namespace hier::model
