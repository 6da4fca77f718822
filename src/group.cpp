#include "group.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "error.hpp"

namespace hier {

Group::Group(const hier_bootstrap& bootstrap)
    : bootstrap_(bootstrap), ranks_(static_cast<std::size_t>(bootstrap.size)), rank_(bootstrap.rank)
{
    std::iota(ranks_.begin(), ranks_.end(), 0);
}

Group::Group(const hier_bootstrap& bootstrap, std::span<const int> ranks)
    : bootstrap_(bootstrap), ranks_(ranks.begin(), ranks.end()),
      rank_(static_cast<int>(std::find(ranks_.begin(), ranks_.end(), bootstrap.rank) -
                             ranks_.begin()))
{
}

// Bruck's algorithm: blocks in the order of the distance to their owner, twice as many at each step.
void Group::gather(const void* in, std::byte* out, std::size_t bytes) const
{
    const std::size_t n = ranks_.size();
    const auto me = static_cast<std::size_t>(rank_);
    std::vector<std::byte> blocks(n * bytes);
    std::memcpy(blocks.data(), in, bytes);
    for (std::size_t have = 1; have < n; have *= 2) {
        const std::size_t moved = std::min(have, n - have) * bytes;
        const int code = bootstrap_.exchange(
            bootstrap_.context, blocks.data(), moved, ranks_[(me + n - have) % n],
            blocks.data() + have * bytes, moved, ranks_[(me + have) % n]);
        if (code != 0)
            throw SetupError(
                format("an exchange among %d ranks failed with code %d", size(), code));
    }
    for (std::size_t i = 0; i < n; i++)
        std::memcpy(out + (me + i) % n * bytes, blocks.data() + i * bytes, bytes);
}

std::vector<std::vector<std::byte>> Group::allgather_bytes(const std::vector<std::byte>& in) const
{
    const auto sizes = allgather(in.size());
    const std::size_t widest = *std::max_element(sizes.begin(), sizes.end());
    std::vector<std::byte> padded(in);
    padded.resize(widest);
    std::vector<std::byte> all(widest * sizes.size());
    if (widest > 0) gather(padded.data(), all.data(), widest);

    std::vector<std::vector<std::byte>> out;
    for (std::size_t r = 0; r < sizes.size(); r++) {
        const std::byte* begin = all.data() + r * widest;
        out.emplace_back(begin, begin + sizes[r]);
    }
    return out;
}

void Group::agree(const char* what, const std::function<void()>& step) const
{
    std::string cause;
    bool is_known = false;
    try {
        step();
    } catch (const KnownFailure& e) {
        is_known = true;
        cause = e.what();
    } catch (const std::exception& e) {
        cause = e.what()[0] != '\0' ? e.what() : "unknown cause";
    }
    const auto failed = allgather(static_cast<int>(!cause.empty()));
    if (is_known) throw KnownFailure(std::string(what) + ": " + cause);
    if (!cause.empty()) throw SetupError(std::string(what) + ": " + cause);
    const auto first = std::find(failed.begin(), failed.end(), 1);
    if (first != failed.end()) {
        throw KnownFailure(format("%s: rank %d of %d failed", what,
                                  static_cast<int>(first - failed.begin()), size()));
    }
}

}  // namespace hier
