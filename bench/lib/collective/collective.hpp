// SPDX-License-Identifier: BSD-3-Clause
// The interface between the timed loop and a library: one allgather.
#pragma once

#include <cstddef>

namespace bench {

class Allgather {
public:
    Allgather() = default;
    Allgather(const Allgather&) = delete;
    Allgather& operator=(const Allgather&) = delete;
    virtual ~Allgather() = default;

    // Both are collective. attach() comes before the first call with these buffers, detach() after
    // the last one. The buffers are the beginnings of allocations of the given lengths.
    virtual void attach(void* send, std::size_t send_bytes, void* receive,
                        std::size_t receive_bytes) = 0;
    virtual void detach() = 0;

    // `bytes`: of one rank, without holes. `send` is nullptr: in place. Returns when the result may
    // be read. An error ends the program.
    virtual void call(const void* send, void* receive, std::size_t bytes) = 0;

    // The same in two steps. The caller may compute between them. Most libraries do all in the first.
    virtual void begin(const void* send, void* receive, std::size_t bytes)
    {
        call(send, receive, bytes);
    }
    virtual void end() {}
};

}  // namespace bench
