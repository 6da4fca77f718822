// SPDX-License-Identifier: BSD-3-Clause
// What is timed: one blocking allgather. The seam between the timed loop and whoever serves it.
#pragma once

#include <cstddef>

namespace bench {

class Allgather {
public:
    Allgather() = default;
    Allgather(const Allgather&) = delete;
    Allgather& operator=(const Allgather&) = delete;
    virtual ~Allgather() = default;

    // Collective: before the first and after the last call with these buffers, which `send_bytes`
    // and `receive_bytes` long allocations begin at.
    virtual void attach(void* send, std::size_t send_bytes, void* receive,
                        std::size_t receive_bytes) = 0;
    virtual void detach() = 0;

    // `bytes`: of one rank, without holes. `send` is nullptr: in place. Returns when the result may
    // be read. An error ends the program.
    virtual void call(const void* send, void* receive, std::size_t bytes) = 0;
};

}  // namespace bench
