// SPDX-License-Identifier: BSD-3-Clause
// The performance variables, for calls on device memory.
#include "test/mpi/lib/gpu_memory.hpp"
#include "test/mpi/programs/calls/counters.hpp"

using namespace hier_test;

int main(int argc, char** argv)
{
    Session session(argc, argv, "gpu_counters",
                    {"bytes", "path", "first", "mappings", "fan-outs", "memory"});
    const auto bytes = static_cast<std::size_t>(session.number("bytes", 1 << 20));
    int devices = 0;
    require_hip(hipGetDeviceCount(&devices), "hipGetDeviceCount");
    require_hip(hipSetDevice(session.rank() % devices), "hipSetDevice");
    {
        const Kind kind =
            session.text("memory", "device") == "mapped" ? Kind::mapped : Kind::device;
        const Memory send(kind, bytes);
        const Memory receive(kind, bytes * static_cast<std::size_t>(session.size()));
        CountedCalls(session, send.data(), receive.data()).run();
    }
    return session.finish();
}
