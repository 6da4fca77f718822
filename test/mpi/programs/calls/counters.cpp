// SPDX-License-Identifier: BSD-3-Clause
// The performance variables, for calls on memory of the host.
#include "counters.hpp"

#include <vector>

using namespace hier_test;

int main(int argc, char** argv)
{
    Session session(argc, argv, "counters", {"bytes", "path", "first", "mappings", "fan-outs"});
    const auto bytes = static_cast<std::size_t>(session.number("bytes", 1 << 20));
    std::vector<unsigned char> send(bytes);
    std::vector<unsigned char> receive(bytes * static_cast<std::size_t>(session.size()));
    CountedCalls(session, send.data(), receive.data()).run();
    return session.finish();
}
