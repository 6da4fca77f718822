// A hier_group for C++: exchanges throw, and a failure on one rank becomes a failure on all.
#pragma once

#include <functional>
#include <vector>

#include "hier/hier.h"

namespace hier {

class Group {
public:
    explicit Group(const hier_group& group) : group_(group) {}

    int rank() const { return group_.rank; }
    int size() const { return group_.size; }

    // `in` of every rank, in rank order. T is sent as bytes.
    template <class T> std::vector<T> allgather(const T& in) const
    {
        std::vector<T> out(static_cast<std::size_t>(size()));
        exchange(&in, out.data(), sizeof(T));
        return out;
    }
    // As above for byte strings of any length.
    std::vector<std::vector<std::byte>> allgather_bytes(const std::vector<std::byte>& in) const;

    // Runs `step`, then tells the others how it went. Throws SetupError on every rank when it threw
    // on any, with the rank's own cause or the number of a rank that failed. No exchange of this
    // group may happen inside `step` after a point where it can throw on some ranks only.
    void agree(const char* what, const std::function<void()>& step) const;

private:
    void exchange(const void* in, void* out, std::size_t bytes) const;

    hier_group group_;
};

}  // namespace hier
