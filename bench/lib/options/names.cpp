// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

namespace bench {

const char* name_of(Program program)
{
    switch (program) {
    case Program::allgather:
        return "allgather";
    case Program::nccl_allgather:
        return "nccl_allgather";
    case Program::gpu_overlap:
        return "gpu_overlap";
    case Program::p2p:
        return "p2p";
    case Program::levels:
        return "levels";
    case Program::allgatherv:
        return "allgatherv";
    case Program::requests:
        return "requests";
    case Program::threads:
        return "threads";
    }
    return "bench";
}

const char* name_of(MemoryKind kind)
{
    switch (kind) {
    case MemoryKind::host:
        return "host";
    case MemoryKind::pinned:
        return "pinned";
    case MemoryKind::device:
        return "device";
    }
    return "";
}

std::string memory_text(const Options& options)
{
    if (options.mixed_memory) {
        return "mixed";
    }
    const std::string receive = name_of(options.memory.receive);
    return options.in_place || options.memory.send == options.memory.receive
               ? receive
               : name_of(options.memory.send) + ("," + receive);
}

std::string blocks_text(const Blocks& blocks)
{
    return blocks.is_whole() ? ""
                             : std::to_string(blocks.bytes) + "@" + std::to_string(blocks.stride);
}

}  // namespace bench
