// SPDX-License-Identifier: BSD-3-Clause
// What the members of a rail tell one another, as bytes, and checks of it. Pure: any bytes may come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "net/devices/tcp_probe.hpp"

namespace hier {

// A receive buffer, as its owner describes it to a sender; or the sender's block in it.
struct Announcement {
    static constexpr std::size_t max_key =
        480;  // bytes; 9-12 with TCP, more with several RDMA devices

    std::uint64_t address;
    std::uint64_t home;       // of the byte at `address`; 0, unless blocks are displaced
    std::uint64_t shape;      // CallShape
    std::uint64_t version;    // another one when anything here changes
    std::uint64_t is_bounce;  // 1: `address` is the sender's place in a bounce buffer
    std::uint64_t key_bytes;
    std::array<std::byte, max_key> key;
};

// Gives nullptr, or says what is wrong. Take a copy first, because the peer can change its words.
const char* fault_of(const Announcement& announcement);

// How a member's board and worker are reached.
struct BoardAddress {
    std::uint64_t address = 0;  // of the board
    std::uint64_t sink = 0;     // number of the member's inbox
    TcpProbe::Address probe{};
    std::uint64_t next = 0;              // the next partner of this rank, in staggered order
    std::vector<std::byte> worker = {};  // the worker's address
    std::vector<std::byte> key = {};     // of the board
};

std::vector<std::byte> bytes_of(const BoardAddress& board);
// No value: no rank of this program sends such bytes.
std::optional<BoardAddress> parse_board(std::span<const std::byte> told);

// The header of a message.
struct MessageHead {
    // As sequence, which no call has: words about the connection (ucx/lane/wireup.hpp).
    static constexpr std::uint64_t hello = ~2ull;
    static constexpr std::uint64_t welcome = ~1ull;
    static constexpr std::uint64_t goodbye = ~0ull;

    std::uint64_t sink = 0;      // its receiver: the number that the worker there gave it
    std::uint64_t sequence = 0;  // of the sender's call
    std::uint64_t offset = 0;    // of the data in the receive buffer
    std::uint64_t packed = 0;    // or in the sender's place in a bounce buffer
    std::uint64_t shape = 0;     // CallShape
    std::uint32_t from = 0;      // index among the receiver's peers
    std::uint32_t count = 0;     // as a signal's

    bool is_word() const { return sequence >= hello; }
    std::uint64_t target(bool is_bounce) const { return is_bounce ? packed : offset; }
};

// Does a message with so much data belong into a call of this shape? `room`: bytes
// of the buffer, or of the sender's place in a bounce buffer.
bool is_inside(const MessageHead& head, std::size_t bytes, std::uint64_t shape, std::size_t room,
               bool is_bounce);

}  // namespace hier
