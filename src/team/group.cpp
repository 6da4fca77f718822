// SPDX-License-Identifier: BSD-3-Clause
#include "team/group.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "base/error.hpp"

namespace hier {
namespace {

// A rank that has failed does not know what the others exchange. It takes in messages up to this
// size.
constexpr std::size_t max_unannounced = 16 << 10;
// The longest byte string that a rank sends. Ours have some KiB.
constexpr std::size_t max_string = 16 << 20;
constexpr int nobody = -1;  // for hier_bootstrap::exchange

}  // namespace

// Leaves an exchange and ends in the agree() that has failed. Nobody else may catch it.
struct Group::Departure final : std::exception {
    explicit Departure(const Vote& v) : vote(v) {}
    const char* what() const noexcept override { return "another rank has failed"; }
    Vote vote;
};

Group::Group(const hier_bootstrap& bootstrap)
    : bootstrap_(bootstrap), size_(bootstrap.size), rank_(bootstrap.rank)
{
}

Group::Group(const hier_bootstrap& bootstrap, std::span<const int> ranks)
    : bootstrap_(bootstrap), ranks_(ranks.begin(), ranks.end()),
      size_(static_cast<int>(ranks.size())),
      rank_(static_cast<int>(std::find(ranks_.begin(), ranks_.end(), bootstrap.rank) -
                             ranks_.begin()))
{
}

int Group::team_rank(std::size_t i) const
{
    return ranks_.empty() ? static_cast<int>(i) : ranks_[i];
}

// Bruck's algorithm. Blocks are in the order of the distance to their owner, and each step has
// twice as many.
Group::Vote Group::spread(Vote vote, std::byte* frame, std::size_t bytes,
                          std::span<std::byte> room) const
{
    const auto n = static_cast<std::size_t>(size_);
    const auto me = static_cast<std::size_t>(rank_);
    for (std::size_t have = 1; have < n; have *= 2) {
        const std::size_t moved = std::min(have, n - have) * bytes;
        const int from = (absent_from_ & have) != 0 ? nobody : team_rank((me + have) % n);
        const int to = (absent_to_ & have) != 0 ? nobody : team_rank((me + n - have) % n);
        std::memcpy(frame, &vote, sizeof vote);
        const int code = bootstrap_.exchange(bootstrap_.context, frame, sizeof vote + moved, to,
                                             room.data(), room.size(), from);
        if (code != 0)
            throw ExchangeFailure(
                format("an exchange among %d ranks failed with code %d", size(), code));
        if (from == nobody) continue;
        Vote theirs;
        std::memcpy(&theirs, room.data(), sizeof theirs);
        if (theirs.mark != Vote::of_ours || theirs.level < 1)
            throw ExchangeFailure(format("rank %d does something else", from));
        if (theirs.level < vote.level) vote = theirs;
        std::memcpy(frame + sizeof vote + have * bytes, room.data() + sizeof theirs, moved);
    }
    return vote;
}

void Group::require_presence() const
{
    if (bootstrap_.is_present == nullptr) return;
    const auto n = static_cast<std::uint32_t>(size_);
    const auto me = static_cast<std::uint32_t>(rank_);
    const auto is_absent = [&](std::uint32_t rank) {
        return bootstrap_.is_present(bootstrap_.context, team_rank(rank)) == 0;
    };
    for (std::uint32_t have = 1; have < n; have *= 2) {
        if (is_absent((me + have) % n)) absent_from_ |= have;
        if (is_absent((me + n - have) % n)) absent_to_ |= have;
    }
    if ((absent_from_ | absent_to_) != 0) throw KnownFailure("a rank is absent");
}

Group::Vote Group::spread(Vote vote) const
{
    std::array<std::byte, sizeof vote> frame;
    std::array<std::byte, max_unannounced> room;
    return spread(vote, frame.data(), 0, room);
}

void Group::gather(const void* in, std::byte* out, std::size_t bytes) const
{
    const auto n = static_cast<std::size_t>(size_);
    const auto me = static_cast<std::size_t>(rank_);
    const std::size_t most = sizeof(Vote) + (n + 1) / 2 * bytes;
    std::vector<std::byte> frame(sizeof(Vote) + n * bytes), room(most);
    std::byte* const blocks = frame.data() + sizeof(Vote);
    std::memcpy(blocks, in, bytes);
    Vote vote;
    if (most > max_unannounced) vote = spread(vote);
    if (vote.level == Vote::none) vote = spread(vote, frame.data(), bytes, room);
    if (vote.level != Vote::none) throw Departure(vote);
    for (std::size_t i = 0; i < n; i++)
        std::memcpy(out + (me + i) % n * bytes, blocks + i * bytes, bytes);
}

// Most strings fit into the first exchange, with their lengths.
std::vector<std::vector<std::byte>> Group::collect_bytes(const std::vector<std::byte>& in) const
{
    struct Begin {
        std::uint64_t size = 0;
        std::array<std::byte, 248> bytes{};
    };
    constexpr std::size_t max = sizeof Begin::bytes;
    Begin mine;
    mine.size = in.size();
    std::copy_n(in.begin(), std::min(in.size(), max), mine.bytes.begin());
    const std::vector<Begin> begins = collect(mine);
    const auto longest =
        std::max_element(begins.begin(), begins.end(),
                         [](const Begin& a, const Begin& b) { return a.size < b.size; });
    const std::size_t widest = longest->size;
    if (widest > max_string)  // on all ranks
        throw SetupError(format("rank %d of %d sends %zu bytes in one message",
                                static_cast<int>(longest - begins.begin()), size(), widest));
    const std::size_t rest = widest - std::min(widest, max);
    std::vector<std::byte> padded(rest), rests(rest * begins.size());
    if (in.size() > max) std::copy(in.begin() + max, in.end(), padded.begin());
    if (rest > 0) gather(padded.data(), rests.data(), rest);

    std::vector<std::vector<std::byte>> out;
    for (std::size_t r = 0; r < begins.size(); r++) {
        const Begin& begin = begins[r];
        const std::size_t at_first = std::min<std::size_t>(begin.size, max);
        std::vector<std::byte>& whole =
            out.emplace_back(begin.bytes.begin(), begin.bytes.begin() + at_first);
        const auto more = rests.begin() + static_cast<std::ptrdiff_t>(r * rest);
        whole.insert(whole.end(), more, more + static_cast<std::ptrdiff_t>(begin.size - at_first));
    }
    return out;
}

namespace {

std::string prefix_of(const char* what) { return *what == '\0' ? "" : std::string(what) + ": "; }

[[noreturn]] void rethrow(const std::exception_ptr& thrown, const char* what)
{
    const std::string prefix = prefix_of(what);
    try {
        std::rethrow_exception(thrown);
    } catch (const KnownFailure& e) {
        throw KnownFailure(prefix + e.what());
    } catch (const std::bad_alloc&) {
        throw SetupError(prefix + "out of memory");
    } catch (const std::exception& e) {
        throw SetupError(prefix + (e.what()[0] != '\0' ? e.what() : "unknown cause"));
    }
}

}  // namespace

void Group::agree(const char* what, void (*step)(void*), void* argument) const
{
    struct Level {
        explicit Level(std::int32_t& level) : level_(level) { level_++; }
        ~Level() { level_--; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;
        std::int32_t& level_;
    };
    const Level guard(level_);
    const std::int32_t level = level_;
    std::exception_ptr thrown;
    Vote vote;
    bool is_told = false;
    try {
        step(argument);
    } catch (const Departure& departure) {
        vote = departure.vote;
        is_told = true;
    } catch (const ExchangeFailure&) {
        throw;
    } catch (...) {
        thrown = std::current_exception();
        vote.level = level;
        vote.rank = rank_;
    }
    if (!is_told) vote = spread(vote);
    if (vote.level < level) throw Departure(vote);
    if (thrown) rethrow(thrown, what);
    if (vote.level == level)
        throw KnownFailure(prefix_of(what) + format("rank %d of %d failed", vote.rank, size()));
}

}  // namespace hier
