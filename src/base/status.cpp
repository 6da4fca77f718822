// SPDX-License-Identifier: BSD-3-Clause
#include "hier/status.hpp"

namespace hier {

const char* to_string(Status status)
{
    switch (status) {
    case Status::ok:
        return "success";
    case Status::in_progress:
        return "in progress";
    case Status::bad_argument:
        return "bad argument";
    case Status::out_of_memory:
        return "out of memory";
    case Status::mismatch:
        return "ranks passed different sizes";
    case Status::transport_error:
        return "a transfer failed";
    case Status::peer_failed:
        return "another rank failed";
    case Status::timed_out:
        return "nothing has moved for too long";
    }
    return "unknown status";
}

}  // namespace hier
