// SPDX-License-Identifier: BSD-3-Clause
// A derived datatype over several allocations of device memory.
#pragma once

#include "gpu_memory.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace hier_test {

// The call comes right behind copies inside the device, which on CUDA return before they are done. The last copy writes
// into an allocation that is neither the first one of the type nor the one with the lowest address.
inline void spread_over_allocations(Caller& caller)
{
    constexpr std::size_t bytes = 64 << 10, much = 8 << 20;
    Session& session = caller.session();
    std::vector<Memory> parts;
    std::vector<Memory> sources;
    for (int i = 0; i < 3; ++i) {
        parts.emplace_back(Kind::device, bytes);
        sources.emplace_back(Kind::device, bytes);
    }
    std::sort(parts.begin(), parts.end(),
              [](const Memory& a, const Memory& b) { return a.data() < b.data(); });
    std::swap(parts[0], parts[1]);
    std::array<MPI_Aint, 3> at{};
    std::array<int, 3> lengths{};
    for (std::size_t i = 0; i < parts.size(); ++i) {
        MPI_Get_address(parts[i].data(), &at[i]);
        lengths[i] = static_cast<int>(bytes);
    }
    MPI_Datatype type;
    MPI_Type_create_hindexed(3, lengths.data(), at.data(), MPI_BYTE, &type);
    MPI_Type_commit(&type);
    const Memory idle(Kind::device, 2 * much);
    const Memory receive(Kind::device, 3 * bytes * static_cast<std::size_t>(session.size()));
    for (int call = 1; call <= 2; ++call) {
        session.phase("a type over three allocations, call %d", call);
        const Bytes mine = Pattern(session.rank(), call).bytes(3 * bytes);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const auto part = mine.begin() + static_cast<std::ptrdiff_t>(i * bytes);
            sources[i].write(0, Bytes(part, part + static_cast<std::ptrdiff_t>(bytes)));
        }
        for (std::size_t i = 0; i < parts.size(); ++i) {
            for (int copy = 0; i == 2 && copy < 8; ++copy) {
                require_hip(hipMemcpyAsync(idle.data() + much, idle.data(), much,
                                           hipMemcpyDeviceToDevice, nullptr),
                            "hipMemcpyAsync");
            }
            require_hip(
                hipMemcpy(parts[i].data(), sources[i].data(), bytes, hipMemcpyDeviceToDevice),
                "hipMemcpy");
        }
#ifndef HIER_CUDA  // hier does not wait for such copies on HIP, so the application has to
        require_hip(hipStreamSynchronize(nullptr), "hipStreamSynchronize");
#endif
        session.ok(caller.allgather(MPI_BOTTOM, 1, type, receive.data(),
                                    static_cast<int>(3 * bytes), MPI_BYTE, MPI_COMM_WORLD),
                   "MPI_Allgather");
        Bytes expected;
        for (int rank = 0; rank < session.size(); ++rank) {
            const Bytes theirs = Pattern(rank, call).bytes(3 * bytes);
            expected.insert(expected.end(), theirs.begin(), theirs.end());
        }
        const std::string wrong = difference(receive.read(0, expected.size()), expected);
        session.check(wrong.empty(), "over three allocations: wrong %s", wrong.c_str());
    }
    MPI_Type_free(&type);
}

}  // namespace hier_test
