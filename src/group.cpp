#include "group.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "error.hpp"

namespace hier {

void Group::exchange(const void* in, void* out, std::size_t bytes) const
{
    const int code = group_.allgather(group_.context, in, out, bytes);
    if (code != 0)
        throw SetupError(format("an exchange among %d ranks failed with code %d", size(), code));
}

std::vector<std::vector<std::byte>> Group::allgather_bytes(const std::vector<std::byte>& in) const
{
    const auto sizes = allgather(in.size());
    const std::size_t widest = *std::max_element(sizes.begin(), sizes.end());
    std::vector<std::byte> padded(in);
    padded.resize(widest);
    std::vector<std::byte> all(widest * sizes.size());
    if (widest > 0) exchange(padded.data(), all.data(), widest);

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
    try {
        step();
    } catch (const std::exception& e) {
        cause = e.what()[0] != '\0' ? e.what() : "unknown cause";
    }
    const auto failed = allgather(static_cast<int>(!cause.empty()));
    if (!cause.empty()) throw SetupError(std::string(what) + ": " + cause);
    const auto first = std::find(failed.begin(), failed.end(), 1);
    if (first != failed.end()) {
        throw SetupError(format("%s: rank %d of %d failed", what,
                                static_cast<int>(first - failed.begin()), size()));
    }
}

}  // namespace hier
