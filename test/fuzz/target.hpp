// SPDX-License-Identifier: BSD-3-Clause
// A fuzz target gives bytes to code that reads what another process or a user has written. It ends
// the process if a rule is broken. A sanitizer ends the process if memory is touched that is not
// there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace hier::fuzz {

using Bytes = std::span<const std::byte>;

struct Target {
    const char* name;
    void (*run)(Bytes bytes);
    // Inputs to begin with, as the program itself would write them.
    std::vector<std::string> (*seeds)();
};

// In alphabetical order.
extern const Target announcements, boards, exports, fragments, messages, networks, numbers, offers,
    places, rates, records, tunings;

inline const std::vector<const Target*>& all_targets()
{
    static const std::vector<const Target*> all{&announcements, &boards,   &exports, &fragments,
                                                &messages,      &networks, &numbers, &offers,
                                                &places,        &rates,    &records, &tunings};
    return all;
}

inline void require(bool holds, const char* rule)
{
    if (holds) return;
    std::fprintf(stderr, "broken: %s\n", rule);
    std::abort();
}

// Takes values from the front of the bytes. What is missing is zero.
class Input {
public:
    explicit Input(Bytes bytes) : rest_(bytes) {}

    template <class T> T take()
    {
        T value{};
        const std::size_t bytes = std::min(sizeof value, rest_.size());
        std::memcpy(static_cast<void*>(&value), rest_.data(), bytes);
        rest_ = rest_.subspan(bytes);
        return value;
    }
    bool empty() const { return rest_.empty(); }
    std::string text() const { return {reinterpret_cast<const char*>(rest_.data()), rest_.size()}; }
    // Up to the next zero byte.
    std::string word()
    {
        const std::string all = text();
        const std::string first = all.substr(0, all.find('\0'));
        rest_ = rest_.subspan(std::min(rest_.size(), first.size() + 1));
        return first;
    }

private:
    Bytes rest_;
};

template <class T> std::string seed(const T& value)
{
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace hier::fuzz
