// SPDX-License-Identifier: BSD-3-Clause
#include "net/rail_words.hpp"

#include <cstring>

#include "hier/call_shape.hpp"
#include "hier/transport.hpp"

namespace hier {
namespace {

// What bytes_of() writes first. The worker's address and the key follow.
struct Head {
    std::uint64_t address;
    std::uint64_t sink;
    TcpProbe::Address probe;
    std::uint64_t next;
    std::uint64_t worker_bytes;
};

}  // namespace

const char* fault_of(const Announcement& announcement)
{
    const std::uint64_t total = CallShape::total(announcement.shape);
    if (announcement.key_bytes == 0 || announcement.key_bytes > Announcement::max_key)
        return "a key of no possible length";
    if (announcement.is_bounce > 1 || announcement.home > total ||
        total - announcement.home > UINT64_MAX - announcement.address)
        return "a buffer that cannot be one";
    return nullptr;
}

std::vector<std::byte> bytes_of(const BoardAddress& board)
{
    const Head head{board.address, board.sink, board.probe, board.next, board.worker.size()};
    std::vector<std::byte> bytes(sizeof head);
    std::memcpy(bytes.data(), &head, sizeof head);
    bytes.insert(bytes.end(), board.worker.begin(), board.worker.end());
    bytes.insert(bytes.end(), board.key.begin(), board.key.end());
    return bytes;
}

std::optional<BoardAddress> parse_board(std::span<const std::byte> told)
{
    Head head;
    if (told.size() < sizeof head) return std::nullopt;
    std::memcpy(&head, told.data(), sizeof head);
    const auto rest = told.subspan(sizeof head);
    const bool has_both = head.worker_bytes > 0 && head.worker_bytes < rest.size();
    const auto family = head.probe.sin6_family;
    const bool is_family = family == AF_UNSPEC || family == AF_INET || family == AF_INET6;
    if (!has_both || !is_family || head.address == 0) return std::nullopt;
    const auto worker = rest.first(head.worker_bytes), key = rest.subspan(head.worker_bytes);
    return BoardAddress{head.address,
                        head.sink,
                        head.probe,
                        head.next,
                        {worker.begin(), worker.end()},
                        {key.begin(), key.end()}};
}

bool is_inside(const MessageHead& head, std::size_t bytes, std::uint64_t shape, std::size_t room,
               bool is_bounce)
{
    return head.shape == shape && fits(head.target(is_bounce), bytes, room);
}

}  // namespace hier
