// Ranks of a team that set something up together: exchanges throw, and a failure on one rank becomes
// a failure on all. Nobody but the group's own ranks takes part, and no communicator is made.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "hier/hier.h"

namespace hier {

class Group {
public:
    // All ranks of the team.
    explicit Group(const hier_bootstrap& bootstrap);
    // These of the team's, in this order; the caller is one of them.
    Group(const hier_bootstrap& bootstrap, std::span<const int> ranks);

    int rank() const { return rank_; }  // in the group
    int size() const { return static_cast<int>(ranks_.size()); }

    // `in` of every rank, in rank order. T is sent as bytes.
    template <class T> std::vector<T> allgather(const T& in) const
    {
        std::vector<T> out(static_cast<std::size_t>(size()));
        gather(&in, reinterpret_cast<std::byte*>(out.data()), sizeof(T));
        return out;
    }
    // As above for byte strings of any length.
    std::vector<std::vector<std::byte>> allgather_bytes(const std::vector<std::byte>& in) const;

    // Runs `step`, then tells the others how it went. Throws SetupError on every rank when it threw
    // on any, with the rank's own cause or the number of a rank that failed. No exchange of this
    // group may happen inside `step` after a point where it can throw on some ranks only.
    void agree(const char* what, const std::function<void()>& step) const;

private:
    // `bytes` of every rank, > 0.
    void gather(const void* in, std::byte* out, std::size_t bytes) const;

    hier_bootstrap bootstrap_;
    std::vector<int> ranks_;  // the team's numbers
    int rank_;
};

}  // namespace hier
