// SPDX-License-Identifier: BSD-3-Clause
// The head of a message over the network. If it fits, the data is copied as the receiver copies it.
#include "net/rail_words.hpp"
#include "test/fuzz/target.hpp"

namespace hier::fuzz {
namespace {

void run(Bytes bytes)
{
    constexpr std::size_t receive = 1000, target = 700;
    Input input(bytes);
    const auto head = input.take<MessageHead>();
    const std::string data = input.text();
    if (!is_inside(head, data.size(), receive, target, false)) return;
    std::vector<char> into(target);
    std::memcpy(into.data() + head.offset, data.data(), data.size());
}

std::vector<std::string> seeds()
{
    return {seed(MessageHead{1, 1, 0, 0, 1000, 0, 1}) + "data",
            seed(MessageHead{1, 1, 690, 0, 1000, 0, 1}) + "ten bytes.",
            seed(MessageHead{1, MessageHead::goodbye, 0, 0, 0, 0, 0})};
}

}  // namespace

const Target messages{"messages", run, seeds};

}  // namespace hier::fuzz
