// SPDX-License-Identifier: BSD-3-Clause
// The bytes by which a member of a rail is connected.
#include "net/rail_words.hpp"
#include "test/fuzz/target.hpp"

namespace hier::fuzz {
namespace {

void run(Bytes bytes)
{
    // On the heap, so that a read behind the end is seen.
    const std::vector<std::byte> told(bytes.begin(), bytes.end());
    const auto board = parse_board(told);
    if (!board) return;
    require(!board->worker.empty() && !board->key.empty(), "both parts are there");
    const auto again = parse_board(bytes_of(*board));
    require(again && again->worker == board->worker && again->key == board->key &&
                again->address == board->address && again->sink == board->sink &&
                again->next == board->next,
            "what is written is read");
}

std::vector<std::string> seeds()
{
    BoardAddress board{4096, 1, {}, 2};
    board.worker.resize(40);
    board.key.resize(12);
    const auto bytes = bytes_of(board);
    board.probe.sin6_family = AF_INET;
    const auto other = bytes_of(board);
    return {{reinterpret_cast<const char*>(bytes.data()), bytes.size()},
            {reinterpret_cast<const char*>(other.data()), other.size()}};
}

}  // namespace

const Target boards{"boards", run, seeds};

}  // namespace hier::fuzz
