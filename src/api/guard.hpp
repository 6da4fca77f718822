// SPDX-License-Identifier: BSD-3-Clause
// No exception leaves the C interface: guarded() turns each into a code, after it has been logged.
#pragma once

#include <exception>
#include <new>

#include "base/log.hpp"
#include "hier/hier.h"
#include "hier/status.hpp"

namespace hier {

int code_of(Status status);  // HIER_OK, ...
Status status_of(int code);  // its inverse

template <class F> int guarded(int on_exception, F f) noexcept
{
    try {
        return f();
    } catch (const std::bad_alloc&) {
        log(HIER_LOG_ERROR, "out of memory");
        return on_exception == HIER_ERR_SETUP ? HIER_ERR_SETUP : HIER_ERR_MEMORY;
    } catch (const std::exception& e) {
        log(HIER_LOG_ERROR, "%s", e.what());
        return on_exception;
    }
}

}  // namespace hier
